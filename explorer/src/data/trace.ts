/** A recorded program: calls of ranks, the messages between them, supersteps, the critical path. Times in ps. */

import type { Source } from "./source";
import { type Rows, Table } from "./table";

/** What a time of a rank is spent on. */
export const KINDS = ["computing", "sending", "waiting", "collective"] as const;
export type Kind = (typeof KINDS)[number];

/** A stretch of the critical path. `wire`: from where a message was sent to where it was waited for. */
export interface Stretch {
  readonly kind: Kind | "wire";
  readonly rank: number;
  /** The rank that the message came from, of `wire`. */
  readonly from: number;
  readonly start: number;
  readonly end: number;
}

/** What ranks send between calls that block them. */
export interface Superstep {
  readonly number: number;
  readonly ranks: number;
  readonly messages: number;
  readonly bytes: number;
  readonly most: number;
  readonly start: number;
  readonly end: number;
}

export interface Pair {
  readonly from: number;
  readonly to: number;
  readonly messages: number;
  readonly bytes: number;
}

const SYNCHRONISING = new Set(["barrier", "allreduce", "allgather", "alltoall", "reduce_scatter"]);
const FROM_ROOT = new Set(["bcast", "scatter"]);
const TO_ROOT = new Set(["reduce", "gather"]);
const NOTHING = new Set(["end"]);

export class Trace {
  readonly length: number;
  readonly ranks: number;
  readonly rank: Float64Array;
  readonly start: Float64Array;
  readonly end: Float64Array;
  readonly peer: Float64Array;
  readonly bytes: Float64Array;
  /** First row of each rank, and the row after the last rank's last one. */
  readonly first: number[] = [];
  /** When the last rank ends. */
  readonly last: number;
  readonly #actions: string[];
  /** Rows of sends whose messages a row completes. */
  readonly #completes = new Map<number, number[]>();
  /** Rows that enter the same collective. */
  readonly #together = new Map<number, readonly number[]>();

  private constructor(
    readonly name: string,
    readonly rows: Rows,
  ) {
    this.length = rows.length;
    [this.rank, this.peer, this.bytes] = ["rank", "peer", "bytes"].map((column) => rows.numbers(column));
    const words = rows.words("action");
    this.#actions = Array.from({ length: rows.length }, (_, row) => words.at(row));
    for (let row = 0; row < rows.length; row++) if (row === 0 || this.rank[row] !== this.rank[row - 1]) this.first[this.rank[row]] = row;
    this.ranks = this.first.length;
    this.first.push(rows.length);
    [this.start, this.end] = ["start_ns", "end_ns"].map((column) => rows.numbers(column).map((ns) => ns * 1000));
    this.#setClocks();
    this.#match();
    this.#meet();
    this.last = this.end.reduce((most, end) => Math.max(most, end), 0);
  }

  static async open(source: Source): Promise<Trace> {
    const table = await Table.open(source, "trace");
    if (table === null) throw new Error(`${source.name} is no trace`);
    return new Trace(source.name, await table.read(table.columns));
  }

  action(row: number): string {
    return this.#actions[row];
  }

  kind(row: number): Kind {
    const action = this.#actions[row];
    return action === "send" ? "sending" : action === "receive" || action === "wait" ? "waiting" : "collective";
  }

  /** Clocks of ranks are set so that they come out of collectives of all at the same time, in the median. */
  #setClocks(): void {
    const comm = this.rows.numbers("comm");
    const ends = Array.from({ length: this.ranks }, (): number[] => []);
    for (let row = 0; row < this.length; row++) if (comm[row] === 0 && SYNCHRONISING.has(this.#actions[row])) ends[this.rank[row]].push(this.end[row]);
    const count = ends[0]?.length ?? 0;
    if (count === 0 || ends.some((own) => own.length !== count)) return;
    const middles = ends[0].map((_, place) => median(ends.map((own) => own[place])));
    ends.forEach((own, rank) => {
      const shift = median(own.map((end, place) => end - middles[place]));
      for (let row = this.first[rank]; row < this.first[rank + 1]; row++) {
        this.start[row] -= shift;
        this.end[row] -= shift;
      }
    });
  }

  /** The k-th send of a communicator, source, target and tag feeds the k-th receive (MPI 4.1, 3.5). */
  #match(): void {
    const [comm, tag, request] = ["comm", "tag", "request"].map((column) => this.rows.numbers(column));
    const requests = this.rows.lists("requests");
    const sends = new Map<string, number[]>();
    const waits = new Map<string, number>();
    for (let row = 0; row < this.length; row++) {
      const action = this.#actions[row];
      if (action === "send") {
        const key = `${comm[row]} ${this.rank[row]} ${this.peer[row]} ${tag[row]}`;
        const all = sends.get(key);
        if (all === undefined) sends.set(key, [row]);
        else all.push(row);
      } else if (action === "wait") for (const one of requests[row]) waits.set(`${this.rank[row]} ${one}`, row);
    }
    const taken = new Map<string, number>();
    for (let row = 0; row < this.length; row++) {
      if (this.#actions[row] !== "receive") continue;
      const key = `${comm[row]} ${this.peer[row]} ${this.rank[row]} ${tag[row]}`;
      const place = taken.get(key) ?? 0;
      taken.set(key, place + 1);
      const send = sends.get(key)?.[place];
      const where = Number.isNaN(request[row]) ? row : waits.get(`${this.rank[row]} ${request[row]}`);
      if (send === undefined || where === undefined) continue;
      const all = this.#completes.get(where);
      if (all === undefined) this.#completes.set(where, [send]);
      else all.push(send);
    }
  }

  #meet(): void {
    const comm = this.rows.numbers("comm");
    const met = new Map<string, number[]>();
    for (let rank = 0; rank < this.ranks; rank++) {
      const count = new Map<number, number>();
      for (let row = this.first[rank]; row < this.first[rank + 1]; row++) {
        if (this.kind(row) !== "collective" || NOTHING.has(this.#actions[row])) continue;
        const place = count.get(comm[row]) ?? 0;
        count.set(comm[row], place + 1);
        const key = `${comm[row]} ${place}`;
        const all = met.get(key);
        if (all === undefined) met.set(key, [row]);
        else all.push(row);
      }
    }
    for (const all of met.values()) for (const row of all) this.#together.set(row, all);
  }

  /** The row that a row had to wait for longest, if that began later than the row itself; -1 if none did. */
  cause(row: number): number {
    let cause = -1;
    const late = (other: number): void => {
      if (other !== row && this.start[other] > this.start[row] && (cause < 0 || this.start[other] > this.start[cause])) cause = other;
    };
    for (const send of this.#completes.get(row) ?? []) late(send);
    const action = this.#actions[row];
    for (const other of this.#together.get(row) ?? []) {
      const root = this.peer[row];
      if (FROM_ROOT.has(action) && this.rank[other] !== root) continue;
      if (TO_ROOT.has(action) && this.rank[row] !== root) continue;
      late(other);
    }
    return cause;
  }

  /** From the last end back to the beginning: what each moment waited for. */
  path(): Stretch[] {
    const found: Stretch[] = [];
    let row = -1;
    for (let one = 0; one < this.length; one++) if (row < 0 || this.end[one] > this.end[row]) row = one;
    let at = row < 0 ? 0 : this.end[row];
    while (row >= 0) {
      const rank = this.rank[row];
      const cause = this.cause(row);
      if (cause >= 0 && this.start[cause] < at) {
        const from = this.rank[cause];
        const kind = this.kind(row) === "collective" ? "collective" : "wire";
        found.push({ kind, rank, from, start: this.start[cause], end: at });
        at = this.start[cause];
        row = cause;
      } else {
        if (this.start[row] < at) found.push({ kind: this.kind(row), rank, from: rank, start: this.start[row], end: at });
        at = Math.min(at, this.start[row]);
      }
      const own = this.rank[row];
      const before = row > this.first[own] ? row - 1 : -1;
      const since = before < 0 ? Math.min(at, 0) : this.end[before];
      if (since < at) {
        found.push({ kind: "computing", rank: own, from: own, start: since, end: at });
        at = since;
      }
      row = before;
    }
    return found.reverse();
  }

  /** Time of a rank on each kind, between two times. */
  times(rank: number, from: number, to: number): Record<Kind, number> {
    const told: Record<Kind, number> = { computing: 0, sending: 0, waiting: 0, collective: 0 };
    let before = from;
    for (let row = this.first[rank]; row < this.first[rank + 1]; row++) {
      const [start, end] = [Math.max(from, this.start[row]), Math.min(to, this.end[row])];
      if (end < from || start > to) continue;
      told.computing += Math.max(0, start - before);
      told[this.kind(row)] += Math.max(0, end - start);
      before = Math.max(before, end);
    }
    return told;
  }

  pairs(): Pair[] {
    const found = new Map<number, { from: number; to: number; messages: number; bytes: number }>();
    for (let row = 0; row < this.length; row++) {
      if (this.#actions[row] !== "send") continue;
      const key = this.rank[row] * this.ranks + this.peer[row];
      const pair = found.get(key) ?? { from: this.rank[row], to: this.peer[row], messages: 0, bytes: 0 };
      pair.messages += 1;
      pair.bytes += this.bytes[row];
      found.set(key, pair);
    }
    return [...found.values()];
  }

  /** The n-th supersteps of all ranks together: what a rank sends until a call blocks it. */
  supersteps(): Superstep[] {
    const request = this.rows.numbers("request");
    const found: { number: number; ranks: number; messages: number; bytes: number; most: number; start: number; end: number }[] = [];
    for (let rank = 0; rank < this.ranks; rank++) {
      let [number, messages, bytes, start] = [0, 0, 0, 0];
      for (let row = this.first[rank]; row < this.first[rank + 1]; row++) {
        const sends = this.#actions[row] === "send";
        if (sends) {
          if (messages === 0) start = this.start[row];
          messages += 1;
          bytes += this.bytes[row];
        }
        if ((!sends || Number.isNaN(request[row])) && !(this.#actions[row] === "receive" && !Number.isNaN(request[row])) && messages > 0) {
          const step = (found[number] ??= { number, ranks: 0, messages: 0, bytes: 0, most: 0, start: Infinity, end: 0 });
          step.ranks += 1;
          step.messages += messages;
          step.bytes += bytes;
          step.most = Math.max(step.most, messages);
          step.start = Math.min(step.start, start);
          step.end = Math.max(step.end, this.end[row]);
          [number, messages, bytes] = [number + 1, 0, 0];
        }
      }
    }
    return found;
  }
}

function median(values: readonly number[]): number {
  const order = [...values].sort((x, y) => x - y);
  const middle = order.length >> 1;
  return order.length % 2 === 1 ? order[middle] : (order[middle - 1] + order[middle]) / 2;
}
