/** The page of routes: groups, their trees on the fabric, tables of switches, merges. */

import { useEffect, useMemo } from "preact/hooks";

import { type Fabric, portKey } from "./data/fabric";
import type { Measured } from "./data/measures";
import type { Group, Routes } from "./data/routes";
import { count, many } from "./data/units";
import { Choice, Head } from "./head";
import { type Go, type Place, ROUTE_VIEWS, usePlace } from "./place";
import { FabricView } from "./views/fabric";
import { type Column, List, sorted } from "./views/list";

const VIEW_NAMES: Record<(typeof ROUTE_VIEWS)[number], string> = { fabric: "Fabric", groups: "Groups", tables: "Tables", merges: "Merges" };

export function RoutesApp({ routes }: { routes: Routes }) {
  const [place, go, replace] = usePlace();
  const engine = routes.engines.includes(place.scheme) ? place.scheme : (routes.engines[0] ?? "");
  const groups = useMemo(() => routes.rowsOf(routes.trees, engine), [routes, engine]);
  const entries = useMemo(() => routes.entries(engine), [routes, engine]);
  const measured: Measured = useMemo(() => {
    const values = routes.efi(engine);
    let most = 0;
    for (const value of values.values()) most = Math.max(most, value);
    return { values, most, words: count };
  }, [routes, engine]);
  const chosen = useMemo(() => {
    const told = /^group:(\d+):(\d+)$/.exec(place.about);
    const row = groups.find((it) => routes.trees.numbers("group")[it] === Number(told?.[1]) && routes.trees.numbers("copy")[it] === Number(told?.[2]));
    return row === undefined ? null : routes.group(row);
  }, [routes, groups, place.about]);
  const tree = useMemo(() => (chosen === null ? [] : routes.tree(chosen, entries)), [routes, chosen, entries]);
  useEffect(() => {
    performance.mark("shown");
    document.documentElement.dataset.ready = "yes";
  }, []);
  const { fabric } = routes;
  const view = (ROUTE_VIEWS as readonly string[]).includes(place.view) ? place.view : "fabric";
  return (
    <>
      <Head title={<b>{routes.source.name}</b>} fabric={fabric} views={ROUTE_VIEWS.map((it) => [it, VIEW_NAMES[it]] as const)} view={view} go={go}>
        <Choice name="Engine" id="engine" value={engine} all={routes.engines} choose={(scheme) => go({ scheme })} />
      </Head>
      {routes.source.leftOut.map((words) => <p class="hint" key={words}>{words}</p>)}
      <main class={/^(group|node|port):/.test(place.about) ? "split" : ""}>
        <section id="view">
          {view === "fabric" && <FabricView fabric={fabric} measured={measured} title="Groups on a link (EFI)" marked={tree} place={place} go={go} />}
          {view === "groups" && <GroupsView routes={routes} rows={groups} place={place} go={go} replace={replace} />}
          {view === "tables" && <TablesView fabric={fabric} entries={entries} place={place} go={go} />}
          {view === "merges" && <MergesView routes={routes} engine={engine} go={go} />}
        </section>
        <div class="aside">
          {chosen !== null && <GroupDetails routes={routes} group={chosen} groups={groups} links={tree.length} go={go} />}
          {/^(node|port):/.test(place.about) && <SwitchDetails fabric={fabric} entries={entries} measured={measured} place={place} go={go} />}
        </div>
      </main>
    </>
  );
}

const aboutGroup = (group: number, copy: number): string => `group:${group}:${copy}`;

function GroupsView({ routes, rows, place, go, replace }: { routes: Routes; rows: readonly number[]; place: Place; go: Go; replace: Go }) {
  const { trees } = routes;
  const columns = useMemo((): Column[] => {
    const [group, mgid, tree, copy, colour] = ["group", "mgid", "tree", "copy", "colour"].map((name) => trees.numbers(name));
    const [name, members, root] = [trees.words("name"), trees.lists("members"), trees.numbers("root")];
    return [
      { key: "group", title: "Group", cell: (row) => count(group[row]), by: (row) => group[row] },
      { key: "name", title: "Name", text: true, cell: (row) => name.at(row), by: (row) => name.at(row) },
      { key: "mgid", title: "MGID", cell: (row) => `0x${mgid[row].toString(16)}`, by: (row) => mgid[row] },
      { key: "members", title: "Members", cell: (row) => count(members[row].length), by: (row) => members[row].length },
      { key: "tree", title: "Tree", cell: (row) => count(tree[row]), by: (row) => tree[row] },
      { key: "copy", title: "Copy", cell: (row) => count(copy[row]), by: (row) => copy[row] },
      { key: "colour", title: "Colour", cell: (row) => count(colour[row]), by: (row) => colour[row] },
      { key: "root", title: "Root", text: true, cell: (row) => routes.fabric.names[root[row]] ?? "", by: (row) => root[row] },
    ];
  }, [trees]);
  const found = useMemo(() => {
    const name = trees.words("name");
    return place.filter === "" ? rows : rows.filter((row) => name.at(row).includes(place.filter));
  }, [rows, place.filter]);
  const sort = place.sort || "group";
  const ordered = useMemo(() => sorted(found, columns, sort), [found, columns, sort]);
  const about = (row: number): string => aboutGroup(trees.numbers("group")[row], trees.numbers("copy")[row]);
  return (
    <>
      <p class="controls">
        <label>
          Filter <input type="search" value={place.filter} placeholder="part of a name" onInput={(event) => replace({ filter: event.currentTarget.value })} />
        </label>
        <output>{many(ordered.length, "group")}</output>
      </p>
      <List label="Groups" rows={ordered} columns={columns} sort={sort} onSort={(next) => go({ sort: next })} onRow={(row) => go({ about: about(row) })} selected={(row) => about(row) === place.about} />
    </>
  );
}

function GroupDetails({ routes, group, groups, links, go }: { routes: Routes; group: Group; groups: readonly number[]; links: number; go: Go }) {
  const { fabric } = routes;
  const together = useMemo(() => {
    const [trees, numbers, copies] = ["tree", "group", "copy"].map((name) => routes.trees.numbers(name));
    return groups.filter((row) => trees[row] === group.tree && copies[row] === group.copy && numbers[row] !== group.group);
  }, [routes, groups, group]);
  return (
    <aside id="details">
      <button class="close" aria-label="Close" onClick={() => go({ about: "" })}>×</button>
      <h2>{group.name}</h2>
      <p class="quiet">
        Group {group.group}, tree {group.tree}, colour {group.colour}
      </p>
      <dl>
        <div><dt>MGID</dt><dd>{`0x${group.mgid.toString(16)}`}</dd></div>
        <div><dt>Root</dt><dd>{fabric.names[group.root]}</dd></div>
        <div><dt>Links of the tree</dt><dd id="tree-links">{count(links)}</dd></div>
      </dl>
      <p>
        <button onClick={() => go({ view: "fabric", sort: "", filter: "" })}>Its tree on the fabric</button>
      </p>
      <h3>{many(group.members.length, "member")}</h3>
      <p class="names">{group.members.slice(0, 200).map((node) => fabric.names[node]).join(", ")}{group.members.length > 200 && " …"}</p>
      <h3>Groups on the same tree</h3>
      {together.length === 0 && <p>None: the tree is its own.</p>}
      {together.slice(0, 30).map((row) => (
        <p key={row}>
          <button class="link" onClick={() => go({ about: aboutGroup(routes.trees.numbers("group")[row], group.copy) })}>{routes.trees.words("name").at(row)}</button>
        </p>
      ))}
      {together.length > 30 && <p class="hint">{together.length - 30} more</p>}
    </aside>
  );
}

type Entries = ReturnType<Routes["entries"]>;

/** How many entries the fullest table of each switch holds. */
function TablesView({ fabric, entries, place, go }: { fabric: Fabric; entries: Entries; place: Place; go: Go }) {
  const rows = useMemo(() => [...entries.keys()], [entries]);
  const fullest = useMemo(() => new Map(rows.map((node) => [node, fullestOf(entries, node)])), [entries]);
  const columns: Column[] = [
    { key: "name", title: "Switch", text: true, cell: (node) => fabric.names[node], by: (node) => fabric.names[node] },
    { key: "level", title: "Level", cell: (node) => fabric.level[node], by: (node) => fabric.level[node] },
    { key: "fullest", title: "Fullest table", cell: (node) => count(fullest.get(node) ?? 0), by: (node) => fullest.get(node) ?? 0 },
    { key: "entries", title: "Entries in all", cell: (node) => count(entries.get(node)?.size ?? 0), by: (node) => entries.get(node)?.size ?? 0 },
  ];
  const sort = place.sort || "-fullest";
  const about = (node: number): string => `node:${fabric.names[node]}`;
  return <List label="Tables" rows={sorted(rows, columns, sort)} columns={columns} sort={sort} onSort={(next) => go({ sort: next })} onRow={(node) => go({ about: about(node) })} selected={(node) => about(node) === place.about} />;
}

/** Entries of a switch's fullest port, or of the switch where its ports share a table. */
function fullestOf(entries: Entries, node: number): number {
  const ports = new Map<number, number>();
  for (const key of entries.get(node)?.keys() ?? []) {
    const port = Math.floor(key / 65536);
    ports.set(port, (ports.get(port) ?? 0) + 1);
  }
  return Math.max(0, ...ports.values());
}

function SwitchDetails({ fabric, entries, measured, place, go }: { fabric: Fabric; entries: Entries; measured: Measured; place: Place; go: Go }) {
  const name = place.about.replace(/^(node|port):/, "");
  const node = place.about.startsWith("port:") ? (fabric.portOf(name)?.node ?? null) : fabric.node(name);
  return (
    <aside id="details">
      <button class="close" aria-label="Close" onClick={() => go({ about: "" })}>×</button>
      {node === null && <p>This fabric has no {name}.</p>}
      {node !== null && (
        <>
          <h2>{fabric.names[node]}</h2>
          <p class="quiet">
            {fabric.isHost(node) ? "Host" : `Switch of level ${fabric.level[node]}; its fullest table holds ${count(fullestOf(entries, node))}`}
          </p>
          <table class="plain" aria-label="Links">
            <thead>
              <tr><th class="text">Leads</th><th>Groups</th></tr>
            </thead>
            <tbody>
              {fabric.portsOf[node].map(({ port }) => (
                <tr key={port}>
                  <td class="text">{fabric.way(node, port)}</td>
                  <td>{count(measured.values.get(portKey(node, port)) ?? 0)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </>
      )}
    </aside>
  );
}

/** Trees that groups share, and why. */
function MergesView({ routes, engine, go }: { routes: Routes; engine: string; go: Go }) {
  const { merges, trees } = routes;
  const rows = useMemo(() => (merges === null ? [] : routes.rowsOf(merges, engine)), [merges, engine]);
  const names = useMemo(() => {
    const all = new Map<number, string>();
    for (const row of routes.rowsOf(trees, engine)) all.set(trees.numbers("group")[row], trees.words("name").at(row));
    return all;
  }, [routes, engine]);
  if (merges === null || rows.length === 0) return <p>No groups share a tree.</p>;
  return (
    <table class="plain wide" id="merges" aria-label="Merges">
      <thead>
        <tr><th>Tree</th><th class="text">Groups</th><th class="text">Why</th></tr>
      </thead>
      <tbody>
        {rows.slice(0, 500).map((row) => (
          <tr key={row}>
            <td>{count(merges.numbers("tree")[row])}</td>
            <td class="text">
              {merges.lists("groups")[row].slice(0, 12).map((group) => (
                <button class="link" key={group} onClick={() => go({ about: aboutGroup(group, 0) })}>{names.get(group)} </button>
              ))}
            </td>
            <td class="text">{merges.words("reason").at(row)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
