/** Parquet files as columns of numbers, and of words by their codes. */

import { decompress } from "fzstd";
import { type AsyncBuffer, type Compressors, type FileMetaData, parquetMetadataAsync, parquetRead, parquetSchema } from "hyparquet";

import type { Source } from "./source";

/** What our files use; hyparquet itself reads Snappy and plain ones. */
const compressors: Compressors = { ZSTD: (input, length) => decompress(input, new Uint8Array(length)) };

/** A column of words: a code per row, and the word of each code. Absent ones have the code 0, the empty word. */
export class Words {
  readonly values: string[] = [""];
  readonly codes: Uint32Array;
  readonly #known = new Map<string, number>([["", 0]]);

  constructor(length: number) {
    this.codes = new Uint32Array(length);
  }

  at(row: number): string {
    return this.values[this.codes[row]];
  }

  set(row: number, word: string): void {
    let code = this.#known.get(word);
    if (code === undefined) {
      code = this.values.length;
      this.values.push(word);
      this.#known.set(word, code);
    }
    this.codes[row] = code;
  }

  /** The code of a word, or -1. */
  code(word: string): number {
    return this.#known.get(word) ?? -1;
  }
}

type Kind = "numbers" | "words" | "lists";

/** Rows of a table. Absent numbers are NaN. */
export class Rows {
  readonly #numbers = new Map<string, Float64Array>();
  readonly #lists = new Map<string, number[][]>();
  readonly #words = new Map<string, Words>();

  constructor(readonly length: number) {}

  has(name: string): boolean {
    return this.#numbers.has(name) || this.#words.has(name);
  }

  numbers(name: string): Float64Array {
    return this.#numbers.get(name) ?? this.#none(name);
  }

  words(name: string): Words {
    return this.#words.get(name) ?? this.#none(name);
  }

  /** A column whose cells are lists of numbers. */
  lists(name: string): number[][] {
    return this.#lists.get(name) ?? this.#none(name);
  }

  /** Values of one column, from a row on. */
  put(name: string, first: number, values: ArrayLike<unknown>): void {
    const count = Math.min(values.length, this.length - first);
    const start = Math.max(0, -first);
    const lists = this.#lists.get(name);
    if (lists !== undefined) {
      for (let i = start; i < count; i++) lists[first + i] = Array.from((values[i] ?? []) as ArrayLike<unknown>, Number);
      return;
    }
    const words = this.#words.get(name);
    if (words !== undefined) {
      for (let i = start; i < count; i++) {
        const value = values[i];
        if (typeof value === "string") words.set(first + i, value);
      }
      return;
    }
    const numbers = this.numbers(name);
    for (let i = start; i < count; i++) {
      const value = values[i];
      numbers[first + i] = value === null || value === undefined ? NaN : Number(value);
    }
  }

  /** A column of that kind, without a value yet. */
  add(name: string, kind: Kind): void {
    if (kind === "words") this.#words.set(name, new Words(this.length));
    else if (kind === "lists") this.#lists.set(name, Array.from({ length: this.length }, () => []));
    else this.#numbers.set(name, new Float64Array(this.length).fill(NaN));
  }

  #none(name: string): never {
    throw new Error(`no column ${name}`);
  }
}

/** Rows of one run lie together. */
interface Part {
  readonly scheme: string;
  readonly seed: number;
  readonly start: number;
  readonly end: number;
}

/** A Parquet file of a results folder. */
export class Table {
  #parts: Promise<Part[]> | null = null;

  private constructor(
    readonly file: AsyncBuffer,
    readonly metadata: FileMetaData,
  ) {}

  /** The table of this name, or null if the folder has none. */
  static async open(source: Source, name: string): Promise<Table | null> {
    const file = `${name}.parquet`;
    if (!source.has(file)) return null;
    const buffer = await source.open(file);
    return new Table(buffer, await parquetMetadataAsync(buffer));
  }

  get length(): number {
    return Number(this.metadata.num_rows);
  }

  get columns(): string[] {
    return [...this.#kinds.keys()];
  }

  /** Columns, and what their cells are. */
  get #kinds(): Map<string, Kind> {
    const kind = (element: { type?: string }, nested: boolean): Kind =>
      nested ? "lists" : element.type === "BYTE_ARRAY" ? "words" : "numbers";
    const columns = parquetSchema(this.metadata).children;
    return new Map(columns.map(({ element, children }) => [element.name, kind(element, children.length > 0)]));
  }

  /** Columns of all rows, or of those of one run. */
  async read(columns: readonly string[], run?: { scheme: string; seed: number }): Promise<Rows> {
    if (run === undefined) return this.#rows(columns, 0, this.length);
    const parts = (await this.parts()).filter((p) => p.scheme === run.scheme && p.seed === run.seed);
    if (parts.length === 0) return this.#rows(columns, 0, 0);
    return this.#rows(columns, parts[0].start, parts[parts.length - 1].end);
  }

  /** Which rows belong to which run. */
  parts(): Promise<Part[]> {
    this.#parts ??= this.#findParts();
    return this.#parts;
  }

  async #findParts(): Promise<Part[]> {
    const rows = await this.#rows(["scheme", "seed"], 0, this.length);
    const scheme = rows.words("scheme");
    const seed = rows.numbers("seed");
    const parts: Part[] = [];
    let start = 0;
    for (let row = 1; row <= rows.length; row++) {
      const same = row < rows.length && scheme.codes[row] === scheme.codes[start] && seed[row] === seed[start];
      if (same) continue;
      parts.push({ scheme: scheme.at(start), seed: seed[start], start, end: row });
      start = row;
    }
    return rows.length === 0 ? [] : parts;
  }

  async #rows(columns: readonly string[], start: number, end: number): Promise<Rows> {
    const rows = new Rows(end - start);
    const kinds = this.#kinds;
    const known = columns.filter((name) => kinds.has(name));
    for (const name of known) rows.add(name, kinds.get(name) ?? "numbers");
    if (end > start && known.length > 0) {
      await parquetRead({
        file: this.file,
        metadata: this.metadata,
        compressors,
        columns: known,
        rowStart: start,
        rowEnd: end,
        onChunk: ({ columnName, columnData, rowStart }) => {
          rows.put(columnName, rowStart - start, columnData);
        },
      });
    }
    return rows;
  }
}
