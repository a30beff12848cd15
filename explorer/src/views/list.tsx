/** A table of any length: only the rows in sight are in the page. */

import type { ComponentChildren } from "preact";
import { useRef, useState } from "preact/hooks";

export interface Column {
  readonly key: string;
  readonly title: string;
  readonly cell: (row: number) => ComponentChildren;
  /** What the column is sorted by; not sorted by if absent. */
  readonly by?: (row: number) => number | string;
  readonly text?: boolean;
}

const HEIGHT = 30;
const SHOWN = 22;
/** Browsers draw no element that is much higher; beyond, the scroll bar stands for a share of the rows. */
const HIGHEST = 8e6;

/** Rows in the order that `sort` names: a column's key, after a minus for the largest first. */
export function sorted(rows: readonly number[], columns: readonly Column[], sort: string): number[] {
  const down = sort.startsWith("-");
  const column = columns.find(({ key }) => key === sort.replace(/^-/, ""));
  const by = column?.by;
  if (by === undefined) return [...rows];
  if (rows.length > 0 && typeof by(rows[0]) === "number") return byNumber(rows, by as (row: number) => number, down);
  const words = new Map(rows.map((row) => [row, String(by(row))]));
  const collator = new Intl.Collator("en", { numeric: true });
  const order = (x: number, y: number): number => collator.compare(words.get(x) ?? "", words.get(y) ?? "");
  return [...rows].sort((x, y) => (down ? order(y, x) : order(x, y)) || x - y);
}

/** Rows by a number; those without one come last. In typed arrays: a million rows take half a second. */
function byNumber(rows: readonly number[], by: (row: number) => number, down: boolean): number[] {
  const keys = new Float64Array(rows.length);
  rows.forEach((row, place) => {
    const key = by(row);
    keys[place] = Number.isNaN(key) ? Infinity : down ? -key : key;
  });
  const places = new Uint32Array(rows.length).map((_, place) => place);
  places.sort((x, y) => (keys[x] === keys[y] ? x - y : keys[x] < keys[y] ? -1 : 1));
  return Array.from(places, (place) => rows[place]);
}

interface Props {
  readonly rows: readonly number[];
  readonly columns: readonly Column[];
  readonly sort: string;
  readonly onSort: (sort: string) => void;
  readonly onRow: (row: number) => void;
  readonly selected?: (row: number) => boolean;
  readonly label: string;
}

export function List({ rows, columns, sort, onSort, onRow, selected, label }: Props) {
  const [first, setFirst] = useState(0);
  const place = useRef<HTMLDivElement>(null);
  const from = Math.max(0, Math.min(first, rows.length - SHOWN));
  const shown = rows.slice(from, from + SHOWN + 6);
  const scale = Math.max(1, (rows.length * HEIGHT) / HIGHEST);
  const scrolled = () => setFirst(Math.floor(((place.current?.scrollTop ?? 0) / HEIGHT) * scale));
  const above = (from * HEIGHT) / scale;
  const below = ((rows.length - from) * HEIGHT) / scale - shown.length * HEIGHT;
  const chooses = (key: string) => onSort(sort === `-${key}` ? key : `-${key}`);
  return (
    <div class="list" ref={place} onScroll={scrolled} style={{ maxHeight: `${(SHOWN - 2) * HEIGHT}px` }}>
      <table aria-label={label} aria-rowcount={rows.length}>
        <thead>
          <tr>
            {columns.map(({ key, title, by, text }) => (
              <th key={key} class={text ? "text" : ""} aria-sort={sort === key ? "ascending" : sort === `-${key}` ? "descending" : "none"}>
                {by === undefined ? title : <button onClick={() => chooses(key)}>{title}</button>}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {from > 0 && <tr class="space" style={{ height: `${above}px` }} />}
          {shown.map((row) => (
            <tr
              key={row}
              tabIndex={0}
              aria-selected={selected?.(row) ?? false}
              onClick={() => onRow(row)}
              onKeyDown={(event) => event.key === "Enter" && onRow(row)}
            >
              {columns.map(({ key, cell, text }) => (
                <td key={key} class={text ? "text" : ""}>{cell(row)}</td>
              ))}
            </tr>
          ))}
          {below > 0 && <tr class="space" style={{ height: `${below}px` }} />}
        </tbody>
      </table>
    </div>
  );
}
