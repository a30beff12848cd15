/** What `raddle route` left: trees of groups, tables of switches, groups on links, merges. */

import { Fabric, type Port, portKey } from "./fabric";
import type { Source } from "./source";
import { type Rows, Table } from "./table";

/** A group under an engine: one row of trees.parquet. */
export interface Group {
  readonly row: number;
  readonly group: number;
  readonly name: string;
  readonly mgid: number;
  readonly tree: number;
  readonly copy: number;
  readonly colour: number;
  readonly root: number;
  readonly members: readonly number[];
}

export class Routes {
  private constructor(
    readonly source: Source,
    readonly fabric: Fabric,
    readonly trees: Rows,
    readonly tables: Rows,
    readonly links: Rows,
    readonly merges: Rows | null,
    readonly engines: readonly string[],
  ) {}

  static async open(source: Source): Promise<Routes> {
    const read = async (name: string): Promise<Rows | null> => {
      const table = await Table.open(source, name);
      return table === null ? null : table.read(table.columns);
    };
    const [nodes, links, trees, tables, merges] = await Promise.all(["nodes", "links", "trees", "tables", "merges"].map(read));
    if (nodes === null || links === null || trees === null || tables === null) {
      throw new Error(`${source.name} lacks one of nodes, links, trees and tables.parquet: raddle route writes them`);
    }
    const engines = [...new Set(Array.from(trees.words("engine").codes, (code) => trees.words("engine").values[code]))];
    return new Routes(source, new Fabric(nodes, ofEngine(links, engines[0] ?? "")), trees, tables, links, merges, engines);
  }

  /** Rows of an engine in one of the tables. */
  rowsOf(rows: Rows, engine: string): number[] {
    return rowsOf(rows, engine);
  }

  group(row: number): Group {
    const [group, mgid, tree, copy, colour, root] = ["group", "mgid", "tree", "copy", "colour", "root"].map(
      (name) => this.trees.numbers(name)[row],
    );
    const name = this.trees.words("name").at(row);
    return { row, group, name, mgid, tree, copy, colour, root, members: this.trees.lists("members")[row] };
  }

  /** Groups on each link, by both of its ports. */
  efi(engine: string): Map<number, number> {
    const [a, pa, b, pb, efi] = ["node_a", "port_a", "node_b", "port_b", "efi"].map((name) => this.links.numbers(name));
    const values = new Map<number, number>();
    for (const row of rowsOf(this.links, engine)) {
      values.set(portKey(a[row], pa[row]), efi[row]);
      values.set(portKey(b[row], pb[row]), efi[row]);
    }
    return values;
  }

  /** Entries of each switch: ports by which packets of a colour leave that come in by a port; port 0 where it does not matter. */
  entries(engine: string): Map<number, Map<number, number[]>> {
    const [node, port, colour] = ["switch", "in_port", "colour"].map((name) => this.tables.numbers(name));
    const out = this.tables.lists("out_ports");
    const all = new Map<number, Map<number, number[]>>();
    for (const row of rowsOf(this.tables, engine)) {
      const own = all.get(node[row]) ?? new Map<number, number[]>();
      all.set(node[row], own);
      own.set(entryKey(Number.isNaN(port[row]) ? 0 : port[row], colour[row]), out[row]);
    }
    return all;
  }

  /** The ports that a message of a group passes, from its first member on, as the switches' tables have it. */
  tree(group: Group, entries: ReturnType<Routes["entries"]>): Port[] {
    const first = group.members[0];
    const open: Port[] = first === undefined ? [] : [...this.fabric.portsOf[first]];
    const passed: Port[] = [];
    const seen = new Set<number>();
    for (let port = open.pop(); port !== undefined; port = open.pop()) {
      const key = portKey(port.node, port.port);
      if (seen.has(key)) continue;
      seen.add(key);
      const own = entries.get(port.peer);
      const out = own?.get(entryKey(port.peerPort, group.colour)) ?? own?.get(entryKey(0, group.colour));
      const atHost = this.fabric.isHost(port.peer);
      if (atHost || out !== undefined) passed.push(port);
      for (const number of out ?? []) {
        const next = this.fabric.ports.get(portKey(port.peer, number));
        if (next !== undefined && number !== port.peerPort) open.push(next);
      }
    }
    return passed;
  }
}

const entryKey = (port: number, colour: number): number => port * 65536 + colour;

function rowsOf(rows: Rows, engine: string): number[] {
  const engines = rows.words("engine");
  const code = engines.code(engine);
  const found: number[] = [];
  for (let row = 0; row < rows.length; row++) if (engines.codes[row] === code) found.push(row);
  return found;
}

/** Links of one engine alone: each of them lists all of the fabric. */
function ofEngine(links: Rows, engine: string): Pick<Rows, "length" | "numbers"> {
  const rows = rowsOf(links, engine);
  return {
    length: rows.length,
    numbers: (name) => {
      // Routes know no rates.
      if (name === "rate_bps") return new Float64Array(rows.length).fill(NaN);
      const values = links.numbers(name);
      return Float64Array.from(rows, (row) => values[row]);
    },
  };
}
