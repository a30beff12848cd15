/** What the page shows, kept in its address: every view is a link. */

import { useEffect, useState } from "preact/hooks";

/** Views of a run, those of routes, of a lab, and of a recorded program. */
export const RUN_VIEWS = ["fabric", "flows", "ports", "jobs", "compare"] as const;
export const ROUTE_VIEWS = ["fabric", "groups", "tables", "merges"] as const;
export const LAB_VIEWS = ["fabric", "hosts", "switches", "jobs"] as const;
export const TRACE_VIEWS = ["lanes", "path", "messages", "supersteps"] as const;
export type View = (typeof RUN_VIEWS)[number] | (typeof ROUTE_VIEWS)[number] | (typeof LAB_VIEWS)[number] | (typeof TRACE_VIEWS)[number];

/** What links and nodes are coloured by. */
export const MEASURES = ["load", "queue", "pause", "marks"] as const;
export type Measure = (typeof MEASURES)[number];

export interface Place {
  view: View;
  /** Scheme, setup or engine. */
  scheme: string;
  seed: number;
  measure: Measure;
  /** The thing whose details are shown: `node:NAME`, `port:NAME:3`, `flow:SRC:DST:SPORT:START`, `job:NAME`, `rank:JOB:3`, `lane:3` of a trace. */
  about: string;
  /** Between which times, ps; whole if absent. */
  from: number | null;
  to: number | null;
  /** Sorted column of a table, with a minus where the largest comes first. */
  sort: string;
  /** Filter of a table. */
  filter: string;
  /** Flows of this port alone. */
  through: string;
  /** The pod that is shown of a large fabric; all of them if absent. */
  pod: number | null;
}

const START: Place = {
  view: "fabric",
  scheme: "",
  seed: NaN,
  measure: "load",
  about: "",
  from: null,
  to: null,
  sort: "",
  filter: "",
  through: "",
  pod: null,
};

export function placeOf(hash: string): Place {
  const told = new URLSearchParams(hash.replace(/^#/, ""));
  const one = <T extends string>(key: string, all: readonly T[], otherwise: T): T =>
    all.find((value) => value === told.get(key)) ?? otherwise;
  const number = (key: string): number | null => {
    const value = told.get(key);
    return value === null || value === "" || !Number.isFinite(Number(value)) ? null : Number(value);
  };
  return {
    view: one<View>("view", [...RUN_VIEWS, ...ROUTE_VIEWS, ...LAB_VIEWS, ...TRACE_VIEWS], START.view),
    measure: one("measure", MEASURES, START.measure),
    scheme: told.get("scheme") ?? "",
    seed: number("seed") ?? NaN,
    about: told.get("about") ?? "",
    from: number("from"),
    to: number("to"),
    sort: told.get("sort") ?? "",
    filter: told.get("filter") ?? "",
    through: told.get("through") ?? "",
    pod: number("pod"),
  };
}

export function hashOf(place: Place): string {
  const told = new URLSearchParams();
  for (const [key, value] of Object.entries(place)) {
    const nothing = value === null || value === "" || Number.isNaN(value);
    if (!nothing && value !== START[key as keyof Place]) told.set(key, String(value));
  }
  return `#${told.toString()}`;
}

export type Go = (change: Partial<Place>) => void;

/** The place, and how to go to another; `replace` leaves no entry in the browser's history. */
export function usePlace(): [Place, Go, Go] {
  const [place, setPlace] = useState(() => placeOf(location.hash));
  useEffect(() => {
    const heard = () => setPlace(placeOf(location.hash));
    addEventListener("hashchange", heard);
    return () => removeEventListener("hashchange", heard);
  }, []);
  const go: Go = (change) => {
    location.hash = hashOf({ ...placeOf(location.hash), ...change });
  };
  const replace: Go = (change) => {
    const next = { ...placeOf(location.hash), ...change };
    history.replaceState(null, "", hashOf(next));
    setPlace(next);
  };
  return [place, go, replace];
}
