/** Questions to a run's tables. */

import { type Fabric, portKey } from "./fabric";
import type { Rows } from "./table";

/** A flow by its ends: one row of flows.parquet. */
export interface Flow {
  readonly row: number;
  readonly src: number;
  readonly dst: number;
  readonly sport: number;
  readonly start: number;
  readonly bytes: number;
  /** Completion time, ps; NaN where it did not finish. */
  readonly time: number;
  /** That on an idle fabric. */
  readonly ideal: number;
  readonly kind: string;
}

export const flowName = (flow: Flow): string => `flow:${flow.src}:${flow.dst}:${flow.sport}:${flow.start}`;

export function flowAt(flows: Rows, row: number): Flow {
  return {
    row,
    src: flows.numbers("src")[row],
    dst: flows.numbers("dst")[row],
    sport: flows.numbers("sport")[row],
    start: flows.numbers("start_ps")[row],
    bytes: flows.numbers("size_bytes")[row],
    time: flows.numbers("fct_ps")[row],
    ideal: flows.numbers("ideal_fct_ps")[row],
    kind: flows.words("class").at(row),
  };
}

/** The flow that a name tells, or null. */
export function flowOf(flows: Rows, name: string): Flow | null {
  const [src, dst, sport, start] = name.split(":").slice(1).map(Number);
  const [sources, ends] = [flows.numbers("src"), flows.numbers("dst")];
  const [sports, starts] = [flows.numbers("sport"), flows.numbers("start_ps")];
  for (let row = 0; row < flows.length; row++) {
    if (sources[row] === src && ends[row] === dst && sports[row] === sport && starts[row] === start) return flowAt(flows, row);
  }
  return null;
}

/** A hop of a flow's way. */
export interface Hop {
  readonly node: number;
  readonly port: number;
  readonly peer: number;
  /** What the flow's last packet waited there, ps; null where that is not recorded. */
  readonly wait: number | null;
  /** The longest queue of the port, bytes. */
  readonly queue: number;
}

/** What a flow waited for. */
export interface Part {
  readonly cause: string;
  readonly culprit: string;
  readonly port: string;
  readonly time: number;
}

/** The parts of a flow's time, the largest first. */
export function partsOf(delays: Rows, flow: Flow): Part[] {
  const [src, dst, sport] = [delays.numbers("src"), delays.numbers("dst"), delays.numbers("sport")];
  const start = delays.numbers("start_ps");
  const parts: Part[] = [];
  for (let row = 0; row < delays.length; row++) {
    const own = src[row] === flow.src && dst[row] === flow.dst && sport[row] === flow.sport && start[row] === flow.start;
    if (own) parts.push(partAt(delays, row));
  }
  return parts.sort((x, y) => y.time - x.time);
}

export const partAt = (rows: Rows, row: number): Part => ({
  cause: rows.words("cause").at(row),
  culprit: rows.words("culprit").at(row),
  port: rows.words("port").at(row),
  time: rows.numbers("time_ps")[row],
});

/** Longest queue of each port, bytes. */
export function queuesOf(ports: Rows): Map<number, number> {
  const [node, port, queue] = [ports.numbers("node"), ports.numbers("port"), ports.numbers("max_queue_bytes")];
  const all = new Map<number, number>();
  for (let row = 0; row < ports.length; row++) all.set(portKey(node[row], port[row]), queue[row]);
  return all;
}

/** The way of a flow, from its host on. Over several rails: of the first. */
export function wayOf(paths: Rows, flow: Flow, waits: readonly Part[] | null, ports: Rows, fabric: Fabric): Hop[] {
  const [src, dst, sport] = [paths.numbers("src"), paths.numbers("dst"), paths.numbers("sport")];
  const [hop, node, port, peer] = ["hop", "node", "port", "peer"].map((name) => paths.numbers(name));
  const [since, rail] = [paths.numbers("since_ps"), paths.numbers("rail")];
  const rows: number[] = [];
  for (let row = 0; row < paths.length; row++) {
    // All messages between two hosts share the ways over rails, which have no port of a flow.
    const own = sport[row] === flow.sport || Number.isNaN(sport[row]);
    if (own && rail[row] === 0 && src[row] === flow.src && dst[row] === flow.dst) rows.push(row);
  }
  // Where a flow took several ways, the last one.
  const last = rows.reduce((latest, row) => Math.max(latest, since[row]), 0);
  const own = rows.filter((row) => since[row] === last).sort((x, y) => hop[x] - hop[y]);
  const queues = queuesOf(ports);
  return own.map((row) => {
    const name = fabric.portName(node[row], port[row]);
    const there = waits?.filter((part) => part.port === name && (part.cause === "queue" || part.cause === "pause"));
    return {
      node: node[row],
      port: port[row],
      peer: peer[row],
      wait: there === undefined ? null : there.reduce((sum, part) => sum + part.time, 0),
      queue: queues.get(portKey(node[row], port[row])) ?? NaN,
    };
  });
}

/** Where a flow's way hurt most: by what it waited where that is known, otherwise by the longest queue. */
export function worstHop(way: readonly Hop[]): Hop | null {
  const by = (hop: Hop): number => hop.wait ?? hop.queue;
  return way.reduce<Hop | null>((worst, hop) => (worst === null || by(hop) > by(worst) ? hop : worst), null);
}

/** Rows of the flows that passed a port. */
export function through(paths: Rows, flows: Rows, node: number, port: number): number[] {
  const [nodes, ports] = [paths.numbers("node"), paths.numbers("port")];
  const [src, dst, sport] = [paths.numbers("src"), paths.numbers("dst"), paths.numbers("sport")];
  const there = new Set<string>();
  for (let row = 0; row < paths.length; row++) {
    // Over rails a way is that of all messages between two hosts.
    const flow = Number.isNaN(sport[row]) ? "" : sport[row];
    if (nodes[row] === node && ports[row] === port) there.add(`${src[row]} ${dst[row]} ${flow}`);
  }
  const [from, to, own] = [flows.numbers("src"), flows.numbers("dst"), flows.numbers("sport")];
  const found: number[] = [];
  for (let row = 0; row < flows.length; row++) {
    const ends = `${from[row]} ${to[row]} `;
    if (there.has(ends + own[row]) || there.has(ends)) found.push(row);
  }
  return found;
}

/** A job or class, and the time for which others waited for it. */
export interface Culprit {
  readonly culprit: string;
  readonly cause: string;
  readonly time: number;
}

/** Whose packets made others wait at a port: from blame.parquet, or flow by flow from delays.parquet. */
export function culpritsAt(rows: Rows, port: string): Culprit[] {
  const there = rows.words("port").code(port);
  const [ports, culprits, causes] = [rows.words("port"), rows.words("culprit"), rows.words("cause")];
  const time = rows.numbers("time_ps");
  const all = new Map<string, Culprit>();
  for (let row = 0; row < rows.length; row++) {
    if (ports.codes[row] !== there || culprits.codes[row] === 0) continue;
    const key = `${causes.at(row)} ${culprits.at(row)}`;
    const sum = (all.get(key)?.time ?? 0) + time[row];
    all.set(key, { culprit: culprits.at(row), cause: causes.at(row), time: sum });
  }
  return [...all.values()].sort((x, y) => y.time - x.time);
}

/** A figure of two runs. */
export interface Difference {
  readonly scheme: string;
  readonly what: string;
  readonly unit: "ps" | "bytes" | "count" | "factor";
  readonly left: number;
  readonly right: number;
  /** Size of the logarithm of their ratio; infinite where one of them is 0. */
  readonly distance: number;
}

/** Figures of a run that two runs are compared by. */
export function figuresOf(flows: Rows, ports: Rows, jobs: Rows | null): Map<string, [Difference["unit"], number]> {
  const figures = new Map<string, [Difference["unit"], number]>();
  const [time, ideal, kind] = [flows.numbers("fct_ps"), flows.numbers("ideal_fct_ps"), flows.words("class")];
  const of = new Map<number, { sum: number; slow: number; finished: number; all: number }>();
  for (let row = 0; row < flows.length; row++) {
    const code = kind.codes[row];
    const own = of.get(code) ?? { sum: 0, slow: 0, finished: 0, all: 0 };
    own.all += 1;
    if (!Number.isNaN(time[row])) {
      own.finished += 1;
      own.sum += time[row];
      own.slow += time[row] / ideal[row];
    }
    of.set(code, own);
  }
  for (const [code, own] of of) {
    const name = kind.values[code];
    figures.set(`completion time of ${name} flows, mean`, ["ps", own.sum / own.finished]);
    figures.set(`slowdown of ${name} flows, mean`, ["factor", own.slow / own.finished]);
    figures.set(`unfinished ${name} flows`, ["count", own.all - own.finished]);
  }
  const total = (name: string): number => ports.numbers(name).reduce((sum, value) => sum + value, 0);
  figures.set("pauses of all ports", ["ps", total("pause_ps")]);
  figures.set("ECN marks", ["count", total("ecn_marks")]);
  figures.set("dropped packets", ["count", total("drops")]);
  figures.set("longest queue", ["bytes", ports.numbers("max_queue_bytes").reduce((most, value) => Math.max(most, value), 0)]);
  if (jobs !== null) {
    const [name, took] = [jobs.words("job"), jobs.numbers("time_ps")];
    for (let row = 0; row < jobs.length; row++) figures.set(`time of job ${name.at(row)}`, ["ps", took[row]]);
  }
  return figures;
}

/** How two runs differ, the largest ratio first. Equal figures are left out. */
export function differences(scheme: string, left: ReturnType<typeof figuresOf>, right: ReturnType<typeof figuresOf>): Difference[] {
  const all: Difference[] = [];
  for (const [what, [unit, a]] of left) {
    const b = right.get(what)?.[1];
    if (b === undefined || a === b || Number.isNaN(a) || Number.isNaN(b)) continue;
    all.push({ scheme, what, unit, left: a, right: b, distance: Math.abs(Math.log(b / a)) });
  }
  return all.sort((x, y) => y.distance - x.distance || (x.what < y.what ? -1 : 1));
}

/** Share of its time that each port sent, from the first start to the last end of a flow. */
export function lasted(flows: Rows): number {
  const [start, time] = [flows.numbers("start_ps"), flows.numbers("fct_ps")];
  let [first, last] = [Infinity, 0];
  for (let row = 0; row < flows.length; row++) {
    first = Math.min(first, start[row]);
    last = Math.max(last, start[row] + (Number.isNaN(time[row]) ? 0 : time[row]));
  }
  return Math.max(1, last - Math.min(first, last));
}
