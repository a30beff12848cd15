/** What links are coloured by, port by port. */

import type { Measure } from "../place";
import { type Fabric, portKey } from "./fabric";
import type { Pauses } from "./pauses";
import type { Rows } from "./table";
import { count, percent, size, span } from "./units";

export interface Measured {
  /** By key of the port. */
  readonly values: Map<number, number>;
  readonly most: number;
  readonly words: (value: number) => string;
}

export const MEASURE_NAMES: Record<Measure, string> = {
  load: "Load",
  queue: "Longest queue",
  pause: "Paused",
  marks: "ECN marks",
};

/** A measure of all ports; `duration` in ps. Pauses are those of the chosen time, all others of the whole run. */
export function measured(measure: Measure, ports: Rows, pauses: Pauses | null, duration: number, fabric: Fabric): Measured {
  const [node, port, rate] = [ports.numbers("node"), ports.numbers("port"), ports.numbers("rate_bps")];
  const values = new Map<number, number>();
  const put = (value: (row: number) => number): void => {
    for (let row = 0; row < ports.length; row++) values.set(portKey(node[row], port[row]), value(row));
  };
  let words = percent;
  if (measure === "load") {
    const bytes = ports.numbers("tx_bytes");
    put((row) => (bytes[row] * 8) / ((rate[row] * duration) / 1e12));
  } else if (measure === "queue") {
    const queue = ports.numbers("max_queue_bytes");
    put((row) => queue[row]);
    words = size;
  } else if (measure === "marks") {
    const marks = ports.numbers("ecn_marks");
    put((row) => marks[row]);
    words = count;
  } else {
    words = span;
    if (pauses === null) put((row) => ports.numbers("pause_ps")[row]);
    else for (const key of fabric.ports.keys()) values.set(key, pauses.time(Math.floor(key / 65536), key % 65536));
  }
  let most = 0;
  for (const value of values.values()) most = Math.max(most, value);
  return { values, most, words };
}

/** The step of a scale of five, from 0 to 4; -1 for nothing. */
export const stepOf = (value: number, most: number): number =>
  value > 0 && most > 0 ? Math.min(4, Math.floor((value / most) * 5)) : -1;
