/** Flows of a run: all, or those that passed a port; filtered, sorted, chosen. */

import { useMemo } from "preact/hooks";

import type { Fabric } from "../data/fabric";
import { flowAt, flowName, through } from "../data/queries";
import { save } from "../data/save";
import type { Rows } from "../data/table";
import { many, size, span, times } from "../data/units";
import type { Go, Place } from "../place";
import { type Column, List, sorted } from "./list";

interface Props {
  readonly fabric: Fabric;
  readonly flows: Rows;
  readonly paths: Rows | null;
  readonly place: Place;
  readonly go: Go;
  readonly replace: Go;
  readonly span: readonly [number, number] | null;
}

export function FlowsView({ fabric, flows, paths, place, go, replace, span: chosen }: Props) {
  const columns = useMemo(() => columnsOf(fabric, flows), [fabric, flows]);
  const port = place.through ? fabric.portOf(place.through) : null;
  const rows = useMemo(() => {
    const all = port !== null && paths !== null ? through(paths, flows, port.node, port.port) : Array.from({ length: flows.length }, (_, row) => row);
    return filtered(all, fabric, flows, place.filter, chosen);
  }, [flows, paths, place.through, place.filter, chosen?.[0], chosen?.[1]]);
  const sort = place.sort || "-slowdown";
  const ordered = useMemo(() => sorted(rows, columns, sort), [rows, columns, sort]);
  return (
    <>
      <p class="controls">
        <label>
          Filter <input type="search" value={place.filter} placeholder="class=long src=h17 bytes>1e6" onInput={(event) => replace({ filter: event.currentTarget.value })} />
        </label>
        <output id="flow-count">
          {many(ordered.length, "flow")}
          {port !== null && <> through {fabric.way(port.node, port.port)}</>}
          {port !== null && paths === null && <>: their ways were not recorded ([record] paths = true)</>}
        </output>
        {place.through && <button onClick={() => go({ through: "" })}>All flows</button>}
        <button onClick={() => saveRows(fabric, flows, ordered)}>Save as CSV</button>
      </p>
      <List
        label="Flows"
        rows={ordered}
        columns={columns}
        sort={sort}
        onSort={(next) => go({ sort: next })}
        onRow={(row) => go({ about: flowName(flowAt(flows, row)) })}
        selected={(row) => flowName(flowAt(flows, row)) === place.about}
      />
    </>
  );
}

function columnsOf(fabric: Fabric, flows: Rows): Column[] {
  const [src, dst, bytes] = [flows.numbers("src"), flows.numbers("dst"), flows.numbers("size_bytes")];
  const [start, time, ideal] = [flows.numbers("start_ps"), flows.numbers("fct_ps"), flows.numbers("ideal_fct_ps")];
  const kind = flows.words("class");
  return [
    { key: "src", title: "From", text: true, cell: (row) => fabric.endName(src[row]), by: (row) => src[row] },
    { key: "dst", title: "To", text: true, cell: (row) => fabric.endName(dst[row]), by: (row) => dst[row] },
    { key: "class", title: "Class", text: true, cell: (row) => kind.at(row), by: (row) => kind.at(row) },
    { key: "size", title: "Size", cell: (row) => size(bytes[row]), by: (row) => bytes[row] },
    { key: "start", title: "Start", cell: (row) => span(start[row]), by: (row) => start[row] },
    { key: "time", title: "Took", cell: (row) => span(time[row]), by: (row) => time[row] },
    { key: "slowdown", title: "Slowdown", cell: (row) => times(time[row] / ideal[row]), by: (row) => time[row] / ideal[row] },
  ];
}

type Test = (row: number) => boolean;

/** Rows that fulfil each word of a filter: KEY=VALUE, KEY>NUMBER, KEY<NUMBER, or a name of an end or a class. */
function filtered(rows: number[], fabric: Fabric, flows: Rows, filter: string, chosen: readonly [number, number] | null): number[] {
  const tests: Test[] = filter.trim().split(/\s+/).filter(Boolean).map((word) => testOf(fabric, flows, word));
  if (chosen !== null) {
    const [start, time] = [flows.numbers("start_ps"), flows.numbers("fct_ps")];
    tests.push((row) => start[row] < chosen[1] && !(start[row] + time[row] < chosen[0]));
  }
  return tests.length === 0 ? rows : rows.filter((row) => tests.every((test) => test(row)));
}

function testOf(fabric: Fabric, flows: Rows, word: string): Test {
  const [src, dst, kind] = [flows.numbers("src"), flows.numbers("dst"), flows.words("class")];
  const told = /^(\w+)(=|>|<)(.+)$/.exec(word);
  if (told === null) {
    const node = fabric.node(word);
    return (row) => src[row] === node || dst[row] === node || kind.at(row).includes(word);
  }
  const [, key, sign, value] = told;
  if (key === "src" || key === "dst") {
    const [ends, node] = [key === "src" ? src : dst, fabric.node(value)];
    return (row) => ends[row] === node;
  }
  if (key === "class") return (row) => kind.at(row) === value;
  const [time, ideal] = [flows.numbers("fct_ps"), flows.numbers("ideal_fct_ps")];
  const numbers: Record<string, Test | ((row: number) => number)> = {
    bytes: (row) => flows.numbers("size_bytes")[row],
    us: (row) => time[row] / 1e6,
    slowdown: (row) => time[row] / ideal[row],
    start_us: (row) => flows.numbers("start_ps")[row] / 1e6,
  };
  const number = numbers[key] as ((row: number) => number) | undefined;
  if (number === undefined) return () => false;
  const bound = Number(value);
  return (row) => (sign === ">" ? number(row) > bound : sign === "<" ? number(row) < bound : number(row) === bound);
}

/** Rows as a file. */
function saveRows(fabric: Fabric, flows: Rows, rows: readonly number[]): void {
  const quoted = (text: string): string => `"${text.replace(/"/g, '""').replace(/^(?=[=+@-])/, "'")}"`;
  const lines = ["src,dst,sport,class,size_bytes,start_ps,fct_ps,ideal_fct_ps"];
  for (const row of rows) {
    const flow = flowAt(flows, row);
    const ends = [flow.src, flow.dst].map((end) => quoted(fabric.endName(end)));
    const time = Number.isNaN(flow.time) ? "" : flow.time;
    lines.push([...ends, flow.sport, quoted(flow.kind), flow.bytes, flow.start, time, flow.ideal].join(","));
  }
  save("flows.csv", "text/csv", `${lines.join("\n")}\n`);
}
