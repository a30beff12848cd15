/** Nodes and links of a run's fabric. */

import type { Rows } from "./table";

/** Key of a port: ports are numbered from 1 at each node. */
export const portKey = (node: number, port: number): number => node * 65536 + port;

export interface Port {
  readonly node: number;
  readonly port: number;
  readonly peer: number;
  readonly peerPort: number;
  readonly rate: number;
}

export class Fabric {
  /** Level of each node: 0 for hosts, then upwards. */
  readonly level: Uint8Array;
  readonly levels: number;
  readonly names: string[] = [];
  readonly kinds: string[] = [];
  readonly ports = new Map<number, Port>();
  /** Nodes of each level, in order of their place. */
  readonly byLevel: number[][] = [];
  /** Ports of each node, in order. */
  readonly portsOf: Port[][] = [];
  /** Links as pairs of ports. */
  readonly links: [Port, Port][] = [];
  readonly #byName = new Map<string, number>();

  constructor(nodes: Rows, links: Pick<Rows, "length" | "numbers">) {
    const [ids, kind, level, name] = [nodes.numbers("node"), nodes.words("kind"), nodes.numbers("level"), nodes.words("name")];
    this.level = new Uint8Array(nodes.length);
    for (let row = 0; row < nodes.length; row++) {
      const id = ids[row];
      this.names[id] = name.at(row);
      this.kinds[id] = kind.at(row);
      this.level[id] = level[row];
      this.portsOf[id] = [];
      this.#byName.set(name.at(row), id);
      (this.byLevel[level[row]] ??= []).push(id);
    }
    this.levels = this.byLevel.length;
    for (let place = 0; place < this.levels; place++) this.byLevel[place] ??= [];
    const [a, pa, b, pb] = ["node_a", "port_a", "node_b", "port_b"].map((column) => links.numbers(column));
    const rate = links.numbers("rate_bps");
    for (let row = 0; row < links.length; row++) {
      const there: Port = { node: a[row], port: pa[row], peer: b[row], peerPort: pb[row], rate: rate[row] };
      const back: Port = { node: b[row], port: pb[row], peer: a[row], peerPort: pa[row], rate: rate[row] };
      this.links.push([there, back]);
      for (const port of [there, back]) {
        this.ports.set(portKey(port.node, port.port), port);
        this.portsOf[port.node].push(port);
      }
    }
    for (const own of this.portsOf) own.sort((x, y) => x.port - y.port);
  }

  get nodes(): number {
    return this.names.length;
  }

  node(name: string): number | null {
    return this.#byName.get(name) ?? null;
  }

  /** Name of a flow's end: a node's, or the group that a message goes to. */
  endName(end: number): string {
    return this.names[end] ?? `group ${end}`;
  }

  isHost(node: number): boolean {
    return this.kinds[node] === "host";
  }

  /** A port as experiments name it. */
  portName(node: number, port: number): string {
    return `${this.names[node]}:${port}`;
  }

  /** A port by that name. */
  portOf(name: string): Port | null {
    const colon = name.lastIndexOf(":");
    const node = this.node(name.slice(0, colon));
    return node === null ? null : (this.ports.get(portKey(node, Number(name.slice(colon + 1)))) ?? null);
  }

  /** A port in words: which way it leads. */
  way(node: number, port: number): string {
    const own = this.ports.get(portKey(node, port));
    return own === undefined ? this.portName(node, port) : `${this.names[node]} → ${this.names[own.peer]}`;
  }
}
