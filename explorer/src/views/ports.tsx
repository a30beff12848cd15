/** Ports of a run, sorted by what they counted. */

import { useMemo } from "preact/hooks";

import type { Fabric } from "../data/fabric";
import type { Rows } from "../data/table";
import { count, many, percent, rate, size, span } from "../data/units";
import type { Go, Place } from "../place";
import { type Column, List, sorted } from "./list";

interface Props {
  readonly fabric: Fabric;
  readonly ports: Rows;
  readonly duration: number;
  readonly place: Place;
  readonly go: Go;
  readonly replace: Go;
}

export function PortsView({ fabric, ports, duration, place, go, replace }: Props) {
  const columns = useMemo(() => columnsOf(fabric, ports, duration), [fabric, ports, duration]);
  const [node, port] = [ports.numbers("node"), ports.numbers("port")];
  const rows = useMemo(() => {
    const word = place.filter.trim();
    const all = Array.from({ length: ports.length }, (_, row) => row);
    const own = (row: number): boolean => fabric.way(node[row], port[row]).includes(word);
    return word === "" ? all : all.filter(own);
  }, [ports, place.filter]);
  const sort = place.sort || "-queue";
  const ordered = useMemo(() => sorted(rows, columns, sort), [rows, columns, sort]);
  const about = (row: number): string => `port:${fabric.portName(node[row], port[row])}`;
  return (
    <>
      <p class="controls">
        <label>
          Filter <input type="search" value={place.filter} placeholder="part of a name" onInput={(event) => replace({ filter: event.currentTarget.value })} />
        </label>
        <output>{many(ordered.length, "port")}</output>
      </p>
      <List
        label="Ports"
        rows={ordered}
        columns={columns}
        sort={sort}
        onSort={(next) => go({ sort: next })}
        onRow={(row) => go({ about: about(row) })}
        selected={(row) => about(row) === place.about}
      />
    </>
  );
}

function columnsOf(fabric: Fabric, ports: Rows, duration: number): Column[] {
  const [node, port, speed] = [ports.numbers("node"), ports.numbers("port"), ports.numbers("rate_bps")];
  const [bytes, queue, paused] = [ports.numbers("tx_bytes"), ports.numbers("max_queue_bytes"), ports.numbers("pause_ps")];
  const [marks, drops] = [ports.numbers("ecn_marks"), ports.numbers("drops")];
  const load = (row: number): number => (bytes[row] * 8) / ((speed[row] * duration) / 1e12);
  return [
    { key: "name", title: "Port", text: true, cell: (row) => fabric.portName(node[row], port[row]), by: (row) => fabric.portName(node[row], port[row]) },
    { key: "way", title: "Leads", text: true, cell: (row) => fabric.way(node[row], port[row]) },
    { key: "rate", title: "Rate", cell: (row) => rate(speed[row]), by: (row) => speed[row] },
    { key: "load", title: "Load", cell: (row) => percent(load(row)), by: load },
    { key: "queue", title: "Longest queue", cell: (row) => size(queue[row]), by: (row) => queue[row] },
    { key: "paused", title: "Paused", cell: (row) => span(paused[row]), by: (row) => paused[row] },
    { key: "marks", title: "ECN marks", cell: (row) => count(marks[row]), by: (row) => marks[row] },
    { key: "drops", title: "Drops", cell: (row) => count(drops[row]), by: (row) => drops[row] },
  ];
}
