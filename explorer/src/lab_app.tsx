/** The page of a lab that is up: what its links carry, hosts, switches, jobs, second by second. */

import { useEffect, useMemo, useState } from "preact/hooks";

import { type Fabric, portKey } from "./data/fabric";
import { fabricOf, type Job, look, type Rates, ratesOf, type Snapshot, type Switch } from "./data/lab";
import { count, rate, size } from "./data/units";
import { Head } from "./head";
import { type Go, LAB_VIEWS, type Place, usePlace } from "./place";
import { FabricView } from "./views/fabric";
import { type Column, List, sorted } from "./views/list";
import { Series } from "./views/series";

const VIEW_NAMES: Record<(typeof LAB_VIEWS)[number], string> = { fabric: "Fabric", hosts: "Hosts", switches: "Switches", jobs: "Jobs" };
const EVERY_MS = 1000;
/** So many looks are kept: three minutes. */
const KEPT = 180;

interface Moment {
  readonly snapshot: Snapshot;
  readonly rates: Rates;
  /** Rounds that all switches have finished, a second. */
  readonly rounds: number;
}

const roundsOf = ({ switches }: Snapshot): number =>
  switches.reduce((sum, { status }) => sum + (status?.jobs ?? []).reduce((all, job) => all + job.rounds, 0), 0);

/** The last moments of the lab, and why there is no further one. */
function useLab(): [readonly Moment[], Fabric | null, string] {
  const [moments, setMoments] = useState<readonly Moment[]>([]);
  const [fabric, setFabric] = useState<Fabric | null>(null);
  const [fault, setFault] = useState("");
  useEffect(() => {
    let timer = 0;
    let before: Snapshot | null = null;
    let built: Fabric | null = null;
    const again = async (): Promise<void> => {
      try {
        const told = await look();
        if (typeof told === "string") {
          setFault(told);
          return;
        }
        built ??= fabricOf(told);
        setFabric(built);
        const earlier = before ?? told;
        const seconds = told.time_s - earlier.time_s;
        const rounds = seconds > 0 ? Math.max(0, roundsOf(told) - roundsOf(earlier)) / seconds : 0;
        const moment = { snapshot: told, rates: ratesOf(built, earlier, told), rounds };
        before = told;
        setMoments((all) => [...all.slice(1 - KEPT), moment]);
      } catch {
        setFault("raddle lab view has ended");
        return;
      }
      timer = setTimeout(() => void again(), EVERY_MS);
    };
    void again();
    return () => clearTimeout(timer);
  }, []);
  return [moments, fabric, fault];
}

export function LabApp({ name }: { name: string }) {
  const [place, go] = usePlace();
  const [moments, fabric, fault] = useLab();
  const now = moments.at(-1);
  useEffect(() => {
    if (now !== undefined) document.documentElement.dataset.ready = "yes";
  }, [now]);
  const timeline = useMemo(() => {
    const start = moments[0]?.snapshot.time_s ?? 0;
    return {
      x: moments.map(({ snapshot }) => (snapshot.time_s - start) * 1e6),
      series: [
        { name: "Mb/s sent by hosts", values: moments.map(({ rates }) => rates.hosts / 1e6), colour: "--flow-2" },
        { name: "rounds/s in switches", values: moments.map(({ rounds }) => rounds), colour: "--flow-4" },
      ],
    };
  }, [moments]);
  if (now === undefined || fabric === null) return fault === "" ? <p>Asking the lab…</p> : <p class="fault" role="alert">{fault}</p>;
  const { snapshot, rates } = now;
  const view = (LAB_VIEWS as readonly string[]).includes(place.view) ? place.view : "fabric";
  const title = (
    <>
      <b>{name}</b> {snapshot.lab.offload === "off" ? "bridges" : snapshot.lab.offload}, up {count(snapshot.lab.up_s)} s, {snapshot.lab.processes === 1 ? "1 process" : `${count(snapshot.lab.processes)} processes`}
    </>
  );
  return (
    <>
      <Head title={title} fabric={fabric} views={LAB_VIEWS.map((it) => [it, VIEW_NAMES[it]] as const)} view={view} go={go}>
        {null}
      </Head>
      {fault !== "" && <p class="fault" role="alert">{fault}: this is how it was at last</p>}
      <section id="time" aria-label="The last three minutes">
        <Series x={timeline.x} series={timeline.series} height={130} />
      </section>
      <main class={/^(node|port):/.test(place.about) ? "split" : ""}>
        <section id="view">
          {view === "fabric" && <LinksView snapshot={snapshot} rates={rates} fabric={fabric} place={place} go={go} />}
          {view === "hosts" && <HostsView snapshot={snapshot} rates={rates} fabric={fabric} place={place} go={go} />}
          {view === "switches" && <SwitchesView snapshot={snapshot} place={place} go={go} />}
          {view === "jobs" && <JobsView snapshot={snapshot} place={place} go={go} />}
        </section>
        <div class="aside">
          {/^(node|port):/.test(place.about) && <NodeDetails snapshot={snapshot} rates={rates} fabric={fabric} place={place} go={go} />}
        </div>
      </main>
    </>
  );
}

interface Props {
  readonly snapshot: Snapshot;
  readonly place: Place;
  readonly go: Go;
}
interface RateProps extends Props {
  readonly rates: Rates;
  readonly fabric: Fabric;
}

function LinksView({ snapshot, rates, fabric, place, go }: RateProps) {
  const measured = useMemo(() => {
    // Against what links carry, where the lab limits it; else against the busiest.
    const limit = Math.max(0, ...snapshot.links.map((link) => link.rate_bps ?? 0));
    return { values: rates.sent, most: Math.max(limit, ...rates.sent.values()), words: rate };
  }, [snapshot, rates]);
  return <FabricView fabric={fabric} measured={measured} title="Sent in the last second" place={place} go={go} />;
}

/** Sum of a rate over the ports of a node, or over those at the other ends of its links. */
const summed = (fabric: Fabric, node: number, values: Map<number, number>, there = false): number =>
  fabric.portsOf[node].reduce((sum, own) => sum + (values.get(there ? portKey(own.peer, own.peerPort) : portKey(own.node, own.port)) ?? 0), 0);

function HostsView({ snapshot, rates, fabric, place, go }: RateProps) {
  const { hosts } = snapshot;
  const node = (row: number): number => fabric.node(hosts[row].name) ?? 0;
  const columns: Column[] = [
    { key: "host", title: "Host", text: true, cell: (row) => hosts[row].name, by: (row) => hosts[row].name },
    { key: "address", title: "Addresses", text: true, cell: (row) => hosts[row].addresses.join(", ") },
    { key: "tor", title: "TOR", text: true, cell: (row) => hosts[row].tor, by: (row) => hosts[row].tor },
    { key: "sent", title: "Sends", cell: (row) => rate(summed(fabric, node(row), rates.sent)), by: (row) => summed(fabric, node(row), rates.sent) },
    { key: "received", title: "Receives", cell: (row) => rate(summed(fabric, node(row), rates.sent, true)), by: (row) => summed(fabric, node(row), rates.sent, true) },
    { key: "lost", title: "Frames lost", cell: (row) => count(summed(fabric, node(row), rates.lost)), by: (row) => summed(fabric, node(row), rates.lost) },
  ];
  return <NamedList label="Hosts" names={hosts.map((host) => host.name)} columns={columns} first="host" place={place} go={go} />;
}

const runs = ({ status, works }: Switch): string => (!works ? "nothing: it has ended" : status === null ? "bridge" : `raddle-switch, ${status.backend}`);
const dropped = ({ status }: Switch): number => (status?.drops ?? []).reduce((sum, drop) => sum + drop.count, 0);

function SwitchesView({ snapshot, place, go }: Props) {
  const { switches } = snapshot;
  const columns: Column[] = [
    { key: "switch", title: "Switch", text: true, cell: (row) => switches[row].name, by: (row) => switches[row].name },
    { key: "tier", title: "Tier", cell: (row) => switches[row].tier, by: (row) => switches[row].tier },
    { key: "address", title: "Address", text: true, cell: (row) => switches[row].address },
    { key: "runs", title: "Runs", text: true, cell: (row) => <span class={switches[row].works ? "" : "fault"}>{runs(switches[row])}</span>, by: (row) => runs(switches[row]) },
    { key: "state", title: "State", text: true, cell: (row) => switches[row].status?.state ?? "" },
    { key: "jobs", title: "Jobs", cell: (row) => count(switches[row].status?.jobs.length ?? NaN), by: (row) => switches[row].status?.jobs.length ?? NaN },
    { key: "drops", title: "Dropped", cell: (row) => count(switches[row].status === null ? NaN : dropped(switches[row])), by: (row) => dropped(switches[row]) },
  ];
  return <NamedList label="Switches" names={switches.map((one) => one.name)} columns={columns} first="switch" place={place} go={go} />;
}

/** A table whose rows are hosts or switches. */
function NamedList({ label, names, columns, first, place, go }: { label: string; names: readonly string[]; columns: Column[]; first: string; place: Place; go: Go }) {
  const sort = place.sort || first;
  const rows = sorted(names.map((_, row) => row), columns, sort);
  const about = (row: number): string => `node:${names[row]}`;
  return <List label={label} rows={rows} columns={columns} sort={sort} onSort={(next) => go({ sort: next })} onRow={(row) => go({ about: about(row) })} selected={(row) => about(row) === place.about} />;
}

function JobsView({ snapshot, go }: Props) {
  const rows = snapshot.switches.flatMap(({ name, status }) => (status?.jobs ?? []).map((job): [string, Job] => [name, job]));
  if (rows.length === 0) return <p>No job has a group in a switch.{snapshot.lab.offload === "off" && " The switches are bridges: raddle lab mpirun --offload sockets."}</p>;
  return (
    <div class="scrolls">
      <table class="plain wide" aria-label="Jobs">
        <thead>
          <tr>
            <th>Job</th><th class="text">Switch</th><th>Groups</th><th>Memory</th><th>Contributions</th><th>Rounds</th><th>Repeats</th><th>Refusals</th>
          </tr>
        </thead>
        <tbody>
          {rows.map(([name, job]) => (
            <tr key={`${name} ${job.job}`}>
              <td>{job.job}</td>
              <td class="text"><button class="link" onClick={() => go({ about: `node:${name}` })}>{name}</button></td>
              <td>{count(job.groups)}</td><td>{size(job.bytes)}</td><td>{count(job.contributions)}</td><td>{count(job.rounds)}</td><td>{count(job.repeats)}</td><td>{count(job.refusals)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function NodeDetails({ snapshot, rates, fabric, place, go }: RateProps) {
  const told = place.about.replace(/^(node|port):/, "");
  const node = place.about.startsWith("port:") ? (fabric.portOf(told)?.node ?? null) : fabric.node(told);
  const name = node === null ? "" : fabric.names[node];
  const own = snapshot.switches.find((one) => one.name === name);
  const host = snapshot.hosts.find((one) => one.name === name);
  return (
    <aside id="details">
      <button class="close" aria-label="Close" onClick={() => go({ about: "" })}>×</button>
      {node === null && <p>This lab has no {told}.</p>}
      {node !== null && (
        <>
          <h2>{name}</h2>
          <p class="quiet">{own === undefined ? `Host, ${host?.addresses.join(", ") ?? ""}, below ${host?.tor ?? ""}` : `Switch of tier ${own.tier}, ${own.address}: ${runs(own)}`}</p>
          <table class="plain" aria-label="Links">
            <thead>
              <tr><th class="text">To</th><th>Sends</th><th>Receives</th><th>Lost</th></tr>
            </thead>
            <tbody>
              {fabric.portsOf[node].map((port) => (
                <tr key={port.port}>
                  <td class="text"><button class="link" onClick={() => go({ about: `node:${fabric.names[port.peer]}` })}>{fabric.names[port.peer]}</button></td>
                  <td>{rate(rates.sent.get(portKey(node, port.port)) ?? NaN)}</td>
                  <td>{rate(rates.sent.get(portKey(port.peer, port.peerPort)) ?? NaN)}</td>
                  <td>{count(rates.lost.get(portKey(node, port.port)) ?? NaN)}</td>
                </tr>
              ))}
            </tbody>
          </table>
          {own?.status != null && (
            <>
              <h3>What it counted</h3>
              <dl>
                <div><dt>Stations</dt><dd>{count(own.status.stations)}</dd></div>
                <div><dt>Messages</dt><dd>{count(own.status.counters?.messages ?? NaN)}</dd></div>
                <div><dt>Lost in the kernel</dt><dd>{count(own.status.counters?.overflow ?? NaN)}</dd></div>
              </dl>
              {dropped(own) === 0 ? <p class="quiet">It has dropped nothing.</p> : (
                <table class="plain" aria-label="Drops">
                  <tbody>
                    {own.status.drops.filter((drop) => drop.count > 0).map((drop) => <tr key={drop.reason}><td class="text">{drop.reason}</td><td>{count(drop.count)}</td></tr>)}
                  </tbody>
                </table>
              )}
            </>
          )}
        </>
      )}
    </aside>
  );
}
