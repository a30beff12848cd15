/** Who silenced whom by PFC. A row of pauses.parquet names the port that had to be silent; its peer sent the PAUSE. */

import { type Fabric, portKey } from "./fabric";
import type { Rows } from "./table";

/** [start, end) in ps, disjoint, in order. */
type Spans = [number, number][];

/** A pause that spread: `pauser` silenced `port` of `paused` for `time` ps. */
export interface Step {
  readonly paused: number;
  readonly port: number;
  readonly pauser: number;
  readonly time: number;
  readonly pauses: number;
}

export class Pauses {
  /** By port. */
  readonly #spans = new Map<number, Spans>();
  readonly #counts = new Map<number, number>();

  constructor(
    rows: Rows,
    readonly fabric: Fabric,
    readonly from: number,
    readonly to: number,
  ) {
    const [node, port] = [rows.numbers("node"), rows.numbers("port")];
    const [start, end] = [rows.numbers("start_ps"), rows.numbers("end_ps")];
    const found = new Map<number, Spans>();
    for (let row = 0; row < rows.length; row++) {
      const begin = Math.max(start[row], from);
      const until = Math.min(Number.isNaN(end[row]) ? Infinity : end[row], to);
      if (until <= begin) continue;
      const key = portKey(node[row], port[row]);
      const spans = found.get(key);
      if (spans === undefined) found.set(key, [[begin, until]]);
      else spans.push([begin, until]);
    }
    for (const [key, spans] of found) {
      this.#counts.set(key, spans.length);
      this.#spans.set(key, merged(spans));
    }
  }

  /** For how long a port was silent, ps. */
  time(node: number, port: number): number {
    return length(this.#spans.get(portKey(node, port)) ?? []);
  }

  /** Who silenced ports of a node, longest first. */
  of(node: number): Step[] {
    return this.#steps(node, null);
  }

  /**
   * From a node to where its pauses began: from each switch on to the one that silenced it longest while it silenced the node
   * before, as long as that was at least half of the time. The last one was free: the queue is its own.
   */
  chain(node: number): Step[] {
    const steps: Step[] = [];
    const seen = new Set([node]);
    let during: Spans | null = null;
    for (let at = node; ; ) {
      const [longest] = this.#steps(at, during);
      if (longest === undefined || longest.time <= 0) return steps;
      if (during !== null && longest.time < length(during) / 2) return steps;
      steps.push(longest);
      if (seen.has(longest.pauser)) return steps;
      seen.add(longest.pauser);
      const spans: Spans = this.#spans.get(portKey(longest.paused, longest.port)) ?? [];
      during = during === null ? spans : overlap(spans, during);
      at = longest.pauser;
    }
  }

  #steps(node: number, during: Spans | null): Step[] {
    const steps: Step[] = [];
    for (const { port, peer } of this.fabric.portsOf[node]) {
      const key = portKey(node, port);
      const spans = this.#spans.get(key);
      if (spans === undefined) continue;
      const time = length(during === null ? spans : overlap(spans, during));
      steps.push({ paused: node, port, pauser: peer, time, pauses: this.#counts.get(key) ?? 0 });
    }
    return steps.sort((x, y) => y.time - x.time || x.port - y.port);
  }
}

const length = (spans: Spans): number => spans.reduce((sum, [start, end]) => sum + end - start, 0);

function merged(spans: Spans): Spans {
  spans.sort((x, y) => x[0] - y[0]);
  const all: Spans = [];
  for (const [start, end] of spans) {
    const last = all[all.length - 1];
    if (last !== undefined && start <= last[1]) last[1] = Math.max(last[1], end);
    else all.push([start, end]);
  }
  return all;
}

function overlap(left: Spans, right: Spans): Spans {
  const all: Spans = [];
  for (let i = 0, j = 0; i < left.length && j < right.length; ) {
    const start = Math.max(left[i][0], right[j][0]);
    const end = Math.min(left[i][1], right[j][1]);
    if (end > start) all.push([start, end]);
    if (left[i][1] < right[j][1]) i++;
    else j++;
  }
  return all;
}
