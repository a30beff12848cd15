/** A lab that is up: asked once a second, and what its counters grew by since. */

import { Fabric, portKey } from "./fabric";
import { asked } from "./source";
import { Rows } from "./table";

/** Counters of an interface, from the start of the lab: bytes, and frames that were lost. */
interface Counters {
  readonly received: number;
  readonly sent: number;
  readonly lost: number;
}

/** A job in a switch, as raddle-switch tells it. */
export interface Job {
  readonly job: number;
  readonly groups: number;
  readonly bytes: number;
  readonly contributions: number;
  readonly rounds: number;
  readonly repeats: number;
  readonly refusals: number;
}

export interface Switch {
  readonly name: string;
  readonly address: string;
  readonly tier: number;
  readonly works: boolean;
  /** What its raddle-switch tells; nothing of a bridge of the kernel. */
  readonly status: {
    readonly backend: string;
    readonly state: string;
    readonly stations: number;
    readonly jobs: readonly Job[];
    readonly counters?: { readonly messages: number; readonly overflow: number };
    readonly drops: readonly { readonly reason: string; readonly count: number }[];
  } | null;
}

export interface Snapshot {
  readonly time_s: number;
  readonly lab: { readonly name: string; readonly offload: string; readonly up_s: number; readonly processes: number };
  readonly nodes: readonly { readonly name: string; readonly level: number; readonly interfaces: Record<string, Counters> }[];
  readonly links: readonly { readonly a: string; readonly a_interface: string; readonly b: string; readonly b_interface: string; readonly rate_bps: number | null }[];
  readonly hosts: readonly { readonly name: string; readonly addresses: readonly string[]; readonly tor: string }[];
  readonly switches: readonly Switch[];
}

/** What the lab is now; a text if it is down. */
export async function look(): Promise<Snapshot | string> {
  const told = (await (await asked("api/lab")).json()) as Snapshot | { down: string };
  return "down" in told ? told.down : told;
}

/** Nodes and links as a fabric: the ports of a node are numbered in order of its links. */
export function fabricOf({ nodes, links }: Snapshot): Fabric {
  const number = new Map(nodes.map(({ name }, place) => [name, place]));
  const used = nodes.map(() => 0);
  const port = (name: string): number => (used[number.get(name) ?? 0] += 1);
  const columns = (all: readonly Record<string, number | string>[], words: readonly string[]): Rows => {
    const rows = new Rows(all.length);
    for (const name of Object.keys(all[0] ?? {})) {
      rows.add(name, words.includes(name) ? "words" : "numbers");
      rows.put(name, 0, all.map((one) => one[name]));
    }
    return rows;
  };
  const ends = links.map(({ a, b, rate_bps }) => ({
    node_a: number.get(a) ?? 0, port_a: port(a), node_b: number.get(b) ?? 0, port_b: port(b), rate_bps: rate_bps ?? NaN,
  }));
  const told = nodes.map(({ name, level }, node) => ({ node, kind: level === 0 ? "host" : "switch", level, name }));
  return new Fabric(columns(told, ["kind", "name"]), columns(ends, []));
}

/** Rates between two looks. */
export interface Rates {
  /** Bit/s that leave by each port, by its key. */
  readonly sent: Map<number, number>;
  /** Frames lost at each port, by its key. */
  readonly lost: Map<number, number>;
  /** Bit/s that all hosts send. */
  readonly hosts: number;
}

export function ratesOf(fabric: Fabric, before: Snapshot, now: Snapshot): Rates {
  const seconds = now.time_s - before.time_s;
  const earlier = new Map(before.nodes.map(({ name, interfaces }) => [name, interfaces]));
  const later = new Map(now.nodes.map(({ name, interfaces }) => [name, interfaces]));
  const sent = new Map<number, number>();
  const lost = new Map<number, number>();
  let hosts = 0;
  now.links.forEach((link, place) => {
    const [there, back] = fabric.links[place];
    for (const [port, name, wire] of [[there, link.a, link.a_interface], [back, link.b, link.b_interface]] as const) {
      const [old, grown] = [earlier.get(name)?.[wire], later.get(name)?.[wire]];
      if (old === undefined || grown === undefined || seconds <= 0) continue;
      const rate = (8 * Math.max(0, grown.sent - old.sent)) / seconds;
      sent.set(portKey(port.node, port.port), rate);
      lost.set(portKey(port.node, port.port), grown.lost);
      if (fabric.isHost(port.node)) hosts += rate;
    }
  });
  return { sent, lost, hosts };
}
