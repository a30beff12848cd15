/** A results folder: its runs, its fabric, and its tables as they are asked for. */

import { Fabric } from "./fabric";
import type { Source } from "./source";
import { type Rows, Table } from "./table";

export interface Run {
  readonly scheme: string;
  readonly seed: number;
}

export class Folder {
  readonly #tables = new Map<string, Promise<Table | null>>();
  readonly #rows = new Map<string, Promise<Rows | null>>();

  private constructor(
    readonly source: Source,
    readonly fabric: Fabric,
    readonly runs: readonly Run[],
  ) {}

  static async open(source: Source): Promise<Folder> {
    const table = async (name: string): Promise<Table> => {
      const found = await Table.open(source, name);
      if (found === null) throw new Error(`${source.name} has no ${name}.parquet: it holds no results of raddle run`);
      return found;
    };
    const [nodes, links, ports] = await Promise.all(["nodes", "links", "ports"].map(table));
    const [fabric, parts] = await Promise.all([
      Promise.all([nodes.read(nodes.columns), links.read(links.columns)]).then(([n, l]) => new Fabric(n, l)),
      ports.parts(),
    ]);
    const folder = new Folder(source, fabric, parts.map(({ scheme, seed }) => ({ scheme, seed })));
    folder.#tables.set("ports", Promise.resolve(ports));
    return folder;
  }

  get name(): string {
    return this.source.name;
  }

  get schemes(): string[] {
    return [...new Set(this.runs.map((run) => run.scheme))];
  }

  seeds(scheme: string): number[] {
    return this.runs.filter((run) => run.scheme === scheme).map((run) => run.seed);
  }

  has(table: string): boolean {
    return this.source.has(`${table}.parquet`);
  }

  /** Rows of a run in one of its tables; null if the folder has no such table. */
  rows(table: string, run: Run): Promise<Rows | null> {
    const key = JSON.stringify([table, run.scheme, run.seed]);
    let rows = this.#rows.get(key);
    if (rows === undefined) {
      rows = this.#read(table, run);
      this.#rows.set(key, rows);
    }
    return rows;
  }

  async #read(name: string, run: Run): Promise<Rows | null> {
    let table = this.#tables.get(name);
    if (table === undefined) {
      table = Table.open(this.source, name);
      this.#tables.set(name, table);
    }
    const found = await table;
    if (found === null) return null;
    const columns = found.columns.filter((column) => column !== "scheme" && column !== "seed");
    return found.read(columns, run);
  }
}
