/** What is known of the chosen thing: a node, a port, a flow, a rank. */

import type { ComponentChildren } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";

import type { Fabric } from "../data/fabric";
import type { Folder, Run } from "../data/folder";
import { Pauses } from "../data/pauses";
import { culpritsAt, flowOf, partsOf, type Part, wayOf, worstHop } from "../data/queries";
import type { Rows } from "../data/table";
import { count, many, percent, rate, size, span, times } from "../data/units";
import type { Go, Place } from "../place";
import { Parts } from "./parts";
import { Series } from "./series";

export interface Tables {
  readonly flows: Rows;
  readonly ports: Rows;
  readonly pauses: Rows | null;
  readonly paths: Rows | null;
  readonly delays: Rows | null;
  readonly blame: Rows | null;
  readonly ranks: Rows | null;
}

interface Props {
  readonly folder: Folder;
  readonly run: Run;
  readonly tables: Tables;
  readonly duration: number;
  readonly place: Place;
  readonly go: Go;
}

/** Details of what is chosen; `id` of the element, `title` above it where two runs stand side by side. */
export function Details({ id, title, ...props }: Props & { readonly id: string; readonly title?: string | undefined }) {
  const { place, go } = props;
  if (!/^(node|port|flow|rank):/.test(place.about)) return null;
  return (
    <aside id={id}>
      <button class="close" aria-label="Close" onClick={() => go({ about: "" })}>×</button>
      {title !== undefined && <p class="quiet">{title}</p>}
      <Chosen {...props} />
    </aside>
  );
}

function Chosen(props: Props) {
  const { fabric } = props.folder;
  const [kind, ...rest] = props.place.about.split(":");
  const name = rest.join(":");
  if (kind === "flow") return <FlowDetails {...props} />;
  if (kind === "rank") return <RankDetails {...props} job={rest[0]} rank={Number(rest[1])} />;
  if (kind === "node") {
    const node = fabric.node(name);
    if (node !== null) return <NodeDetails {...props} node={node} />;
  }
  const port = kind === "port" ? fabric.portOf(name) : null;
  return port === null ? <p>This fabric has no {kind} {name}.</p> : <PortDetails {...props} node={port.node} port={port.port} />;
}

/** What waited where, behind whom: of all flows if that is recorded, otherwise of what jobs took. */
const waitsOf = (tables: Tables): Rows | null => tables.delays ?? tables.blame;

function PortLink({ fabric, node, port, go }: { fabric: Fabric; node: number; port: number; go: Go }) {
  return (
    <button class="link" title={fabric.portName(node, port)} onClick={() => go({ about: `port:${fabric.portName(node, port)}` })}>
      {fabric.way(node, port)}
    </button>
  );
}

function NodeLink({ fabric, node, go }: { fabric: Fabric; node: number; go: Go }) {
  if (fabric.names[node] === undefined) return <>{fabric.endName(node)}</>;
  return <button class="link" onClick={() => go({ about: `node:${fabric.names[node]}` })}>{fabric.names[node]}</button>;
}

function Facts({ facts }: { facts: [string, ComponentChildren][] }) {
  return (
    <dl>
      {facts.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

/** From a node to where its pauses began, and why. */
function Chain({ pauses, fabric, node, tables, go }: { pauses: Pauses; fabric: Fabric; node: number; tables: Tables; go: Go }) {
  const steps = useMemo(() => pauses.chain(node), [pauses, node]);
  if (steps.length === 0) return <p>{fabric.names[node]} was not paused.</p>;
  const root = steps[steps.length - 1].pauser;
  const [nodes, ports, queue] = [tables.ports.numbers("node"), tables.ports.numbers("port"), tables.ports.numbers("max_queue_bytes")];
  let fullest = -1;
  for (let row = 0; row < tables.ports.length; row++) {
    if (nodes[row] === root && (fullest < 0 || queue[row] > queue[fullest])) fullest = row;
  }
  const rows = waitsOf(tables);
  const circle = steps.some((step) => step.paused === root);
  const culprits = rows && fullest >= 0 ? culpritsAt(rows, fabric.portName(root, ports[fullest])) : [];
  return (
    <ol class="chain" id="pause-chain">
      {steps.map((step) => (
        <li key={`${step.paused} ${step.port}`}>
          <NodeLink fabric={fabric} node={step.pauser} go={go} /> silenced <PortLink fabric={fabric} node={step.paused} port={step.port} go={go} /> for{" "}
          <b>{span(step.time)}</b> ({many(step.pauses, "pause")})
        </li>
      ))}
      {fullest >= 0 && (
        <li id="pause-root">
          <NodeLink fabric={fabric} node={root} go={go} /> {circle ? "closes a circle of pauses" : "was free for most of that time"}: its own longest queue is at{" "}
          <PortLink fabric={fabric} node={root} port={ports[fullest]} go={go} />, up to <b>{size(queue[fullest])}</b>
          {culprits.length > 0 && <>, most of it of <b>{culprits[0].culprit}</b></>}
        </li>
      )}
    </ol>
  );
}

function usePauses(tables: Tables, fabric: Fabric, place: Place): Pauses | null {
  return useMemo(
    () => (tables.pauses === null ? null : new Pauses(tables.pauses, fabric, place.from ?? 0, place.to ?? Infinity)),
    [tables.pauses, fabric, place.from, place.to],
  );
}

function NodeDetails({ folder, tables, duration, node, place, go }: Props & { node: number }) {
  const { fabric } = folder;
  const pauses = usePauses(tables, fabric, place);
  const name = fabric.names[node];
  const rows = useMemo(() => {
    const nodes = tables.ports.numbers("node");
    return Array.from({ length: tables.ports.length }, (_, row) => row).filter((row) => nodes[row] === node);
  }, [tables, node]);
  const [port, speed, bytes] = [tables.ports.numbers("port"), tables.ports.numbers("rate_bps"), tables.ports.numbers("tx_bytes")];
  const [queue, paused] = [tables.ports.numbers("max_queue_bytes"), tables.ports.numbers("pause_ps")];
  return (
    <>
      <h2>{name}</h2>
      <p class="quiet">{fabric.isHost(node) ? "Host" : `Switch of level ${fabric.level[node]}`}</p>
      {pauses !== null && (
        <>
          <h3>Who paused it, and why</h3>
          <Chain pauses={pauses} fabric={fabric} node={node} tables={tables} go={go} />
        </>
      )}
      {fabric.isHost(node) && (
        <p>
          <button onClick={() => go({ view: "flows", filter: name, through: "", sort: "" })}>Its flows</button>
        </p>
      )}
      <h3>Ports</h3>
      <div class="scrolls">
        <table class="plain" aria-label={`Ports of ${name}`}>
          <thead>
            <tr><th class="text">Leads</th><th>Load</th><th>Longest queue</th><th>Paused</th></tr>
          </thead>
          <tbody>
            {rows.slice(0, 200).map((row) => (
              <tr key={row}>
                <td class="text"><PortLink fabric={fabric} node={node} port={port[row]} go={go} /></td>
                <td>{percent((bytes[row] * 8) / ((speed[row] * duration) / 1e12))}</td>
                <td>{size(queue[row])}</td>
                <td>{span(paused[row])}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}

function PortDetails({ folder, run, tables, duration, node, port, place, go }: Props & { node: number; port: number }) {
  const { fabric } = folder;
  const pauses = usePauses(tables, fabric, place);
  const own = fabric.portsOf[node].find((it) => it.port === port);
  const row = useMemo(() => {
    const [nodes, ports] = [tables.ports.numbers("node"), tables.ports.numbers("port")];
    for (let at = 0; at < tables.ports.length; at++) if (nodes[at] === node && ports[at] === port) return at;
    return -1;
  }, [tables, node, port]);
  const name = fabric.portName(node, port);
  const culprits = useMemo(() => {
    const rows = waitsOf(tables);
    return rows === null ? null : culpritsAt(rows, name);
  }, [tables, name]);
  const value = (column: string): number => (row < 0 ? NaN : tables.ports.numbers(column)[row]);
  const whole = culprits?.reduce((sum, it) => sum + it.time, 0) ?? 0;
  return (
    <>
      <h2>{name}</h2>
      <p class="quiet">
        <NodeLink fabric={fabric} node={node} go={go} /> → {own && <NodeLink fabric={fabric} node={own.peer} go={go} />}
      </p>
      <Facts
        facts={[
          ["Rate", rate(value("rate_bps"))],
          ["Load", percent((value("tx_bytes") * 8) / ((value("rate_bps") * duration) / 1e12))],
          ["Longest queue", size(value("max_queue_bytes"))],
          ["Paused", span(value("pause_ps"))],
          ["ECN marks", count(value("ecn_marks"))],
          ["Drops", count(value("drops"))],
        ]}
      />
      <p>
        <button onClick={() => go({ view: "flows", through: name, filter: "", sort: "" })}>Flows through it</button>
      </p>
      <h3>Who filled it</h3>
      {culprits === null && <p class="hint">Not recorded: [record] delays = true, or jobs.</p>}
      {culprits?.length === 0 && <p>Nothing of what was taken apart waited here behind others.</p>}
      {culprits !== null && culprits.length > 0 && (
        <table class="plain" id="culprits" aria-label="Who filled it">
          <tbody>
            {culprits.map(({ culprit, cause, time }) => (
              <tr key={`${cause} ${culprit}`}>
                <td class="text">{culprit}</td>
                <td class="text">{cause}</td>
                <td>{span(time)}</td>
                <td>{percent(time / whole)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      <PortSeries folder={folder} run={run} node={node} port={port} />
      {pauses !== null && (
        <>
          <h3>Who paused {fabric.names[node]}</h3>
          <Chain pauses={pauses} fabric={fabric} node={node} tables={tables} go={go} />
        </>
      )}
    </>
  );
}

function useRows(folder: Folder, table: string, run: Run): Rows | null {
  const [rows, setRows] = useState<Rows | null>(null);
  useEffect(() => {
    let current = true;
    folder.rows(table, run).then((found) => current && setRows(found), () => undefined);
    return () => {
      current = false;
    };
  }, [folder, table, run.scheme, run.seed]);
  return rows;
}

function PortSeries({ folder, run, node, port }: { folder: Folder; run: Run; node: number; port: number }) {
  const rows = useRows(folder, "port_queues", run);
  const data = useMemo(() => {
    if (rows === null) return null;
    const [nodes, ports, time, queue] = ["node", "port", "time_ps", "queue_bytes"].map((name) => rows.numbers(name));
    const own = Array.from({ length: rows.length }, (_, row) => row).filter((row) => nodes[row] === node && ports[row] === port);
    return own.length === 0 ? null : [own.map((row) => time[row] / 1e6), own.map((row) => queue[row] / 1024)];
  }, [rows, node, port]);
  if (data === null) return null;
  return (
    <>
      <h3>Its queue over time</h3>
      <Series x={data[0]} series={[{ name: "queue, KiB", values: data[1], colour: "--flow-7" }]} height={140} />
    </>
  );
}

function FlowDetails({ folder, run, tables, place, go }: Props) {
  const { fabric } = folder;
  const flow = useMemo(() => flowOf(tables.flows, place.about), [tables.flows, place.about]);
  const parts: Part[] | null = useMemo(
    () => (flow === null || tables.delays === null ? null : partsOf(tables.delays, flow)),
    [flow, tables.delays],
  );
  const way = useMemo(
    () => (flow === null || tables.paths === null ? null : wayOf(tables.paths, flow, parts, tables.ports, fabric)),
    [flow, parts, tables, fabric],
  );
  const watched = useRows(folder, "flow_throughput", run);
  const series = useMemo(() => {
    if (flow === null || watched === null) return null;
    const [src, dst, sport] = ["src", "dst", "sport"].map((name) => watched.numbers(name));
    const [time, bytes] = [watched.numbers("time_ps"), watched.numbers("delivered_bytes")];
    const own: number[] = [];
    for (let row = 0; row < watched.length; row++) {
      if (src[row] === flow.src && dst[row] === flow.dst && sport[row] === flow.sport) own.push(row);
    }
    if (own.length < 2) return null;
    const gap = time[own[1]] - time[own[0]];
    return [own.map((row) => time[row] / 1e6), own.map((row) => (bytes[row] * 8) / (gap / 1e12) / 1e9)];
  }, [flow, watched]);
  if (flow === null) return <p>This run has no such flow.</p>;
  const worst = way === null ? null : worstHop(way);
  return (
    <>
      <h2>
        <NodeLink fabric={fabric} node={flow.src} go={go} /> → <NodeLink fabric={fabric} node={flow.dst} go={go} />
      </h2>
      <p class="quiet">Flow of class {flow.kind}, source port {flow.sport}</p>
      <Facts
        facts={[
          ["Size", size(flow.bytes)],
          ["Start", span(flow.start)],
          ["Took", Number.isNaN(flow.time) ? "did not finish" : span(flow.time)],
          ["Idle fabric", span(flow.ideal)],
          ["Slowdown", times(flow.time / flow.ideal)],
        ]}
      />
      <h3>Its way</h3>
      {way === null && <p class="hint">Not recorded: [record] paths = true.</p>}
      {way?.length === 0 && <p>No way is recorded: it ends at its own host, or goes to a group.</p>}
      {way !== null && way.length > 0 && (
        <ol class="chain" id="way">
          {way.map((hop) => (
            <li key={hop.node} class={hop === worst ? "worst" : ""}>
              <PortLink fabric={fabric} node={hop.node} port={hop.port} go={go} />: {hop.wait === null ? "" : <>waited <b>{span(hop.wait)}</b>, </>}
              longest queue {size(hop.queue)}
              {hop === worst && (
                <>
                  {" "}
                  <button id="worst" onClick={() => go({ view: "flows", through: fabric.portName(hop.node, hop.port), filter: "", sort: "" })}>
                    Flows on this worst hop
                  </button>
                </>
              )}
            </li>
          ))}
        </ol>
      )}
      <h3>Where its time went</h3>
      {parts === null ? <p class="hint">Not recorded: [record] delays = true.</p> : <Parts parts={parts} go={go} label="Time of the flow" />}
      {series !== null && (
        <>
          <h3>Its rate</h3>
          <Series x={series[0]} series={[{ name: "Gb/s", values: series[1], colour: "--flow-2" }]} height={140} />
        </>
      )}
    </>
  );
}

/** What one rank waited for: whom, and what kept the messages. */
function RankDetails({ tables, job, rank, go }: Props & { job: string; rank: number }) {
  const waits = useMemo(() => (tables.ranks === null ? null : waitsOfRank(tables.ranks, job, rank)), [tables.ranks, job, rank]);
  if (waits === null) return <p>What each rank did when was not recorded: [record] ranks = true.</p>;
  return (
    <>
      <h2>Rank {rank} of {job}</h2>
      <Facts facts={[...waits.activities].map(([name, time]) => [name, `${span(time)} (${percent(time / waits.whole)})`])} />
      <h3>What it waited for</h3>
      {waits.groups.length === 0 && <p>It never waited.</p>}
      {waits.groups.length > 0 && (
        <table class="plain" id="waits" aria-label="What it waited for">
          <thead>
            <tr><th class="text">Rank</th><th class="text">What kept its messages most</th><th>Waited</th><th>Rank was late</th></tr>
          </thead>
          <tbody>
            {waits.groups.slice(0, 30).map(({ from, time, late, cause, culprit, port }) => (
              <tr key={from}>
                <td class="text">
                  {from < 0 ? "nobody" : <button class="link" onClick={() => go({ about: `rank:${job}:${from}` })}>rank {from}</button>}
                </td>
                <td class="text">
                  {cause || "–"}
                  {culprit && <> behind {culprit}</>}
                  {port && <> at <button class="link" onClick={() => go({ about: `port:${port}` })}>{port}</button></>}
                </td>
                <td>{span(time)}</td>
                <td>{span(late)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      <p><button onClick={() => go({ view: "jobs", about: `job:${job}` })}>All of {job}</button></p>
    </>
  );
}

interface Wait {
  readonly from: number;
  time: number;
  late: number;
  cause: string;
  culprit: string;
  port: string;
  most: number;
}

function waitsOfRank(ranks: Rows, job: string, rank: number) {
  const [jobs, activity] = [ranks.words("job"), ranks.words("activity")];
  const [cause, culprit, port] = [ranks.words("cause"), ranks.words("culprit"), ranks.words("port")];
  const [number, start, end, from, late] = ["rank", "start_ps", "end_ps", "from_rank", "late_ps"].map((name) => ranks.numbers(name));
  const code = jobs.code(job);
  const groups = new Map<number, Wait>();
  const activities = new Map<string, number>();
  let whole = 0;
  for (let row = 0; row < ranks.length; row++) {
    if (jobs.codes[row] !== code || number[row] !== rank) continue;
    const time = end[row] - start[row];
    whole += time;
    activities.set(activity.at(row), (activities.get(activity.at(row)) ?? 0) + time);
    if (activity.at(row) !== "waiting") continue;
    const peer = Number.isNaN(from[row]) ? -1 : from[row];
    const own = groups.get(peer) ?? { from: peer, time: 0, late: 0, cause: "", culprit: "", port: "", most: 0 };
    own.time += time;
    own.late += Number.isNaN(late[row]) ? 0 : late[row];
    if (time > own.most) Object.assign(own, { most: time, cause: cause.at(row), culprit: culprit.at(row), port: port.at(row) });
    groups.set(peer, own);
  }
  return { whole, activities, groups: [...groups.values()].sort((x, y) => y.time - x.time) };
}

