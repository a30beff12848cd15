/** The explorer: looks into results of `raddle run` and `raddle route`, traces, and a lab that is up. */

import { type ComponentChild, render } from "preact";

import { App } from "./app";
import { Folder } from "./data/folder";
import { Routes } from "./data/routes";
import { type Source, subject } from "./data/source";
import { Trace } from "./data/trace";
import { LabApp } from "./lab_app";
import { RoutesApp } from "./routes_app";
import { TraceApp } from "./trace_app";

async function page(about: readonly Source[] | { lab: string }): Promise<ComponentChild> {
  if ("lab" in about) return <LabApp name={about.lab} />;
  const all = about;
  const [first] = all;
  if (first?.has("trace.parquet")) return <TraceApp traces={await Promise.all(all.map((source) => Trace.open(source)))} />;
  if (first?.has("trees.parquet")) return <RoutesApp routes={await Routes.open(first)} />;
  return <App folders={await Promise.all(all.map((source) => Folder.open(source)))} />;
}

const place = document.getElementById("app");
if (place !== null) {
  subject()
    .then(page)
    .then(
      (shown) => {
        place.textContent = "";
        render(shown, place);
      },
      (error: unknown) => {
        place.textContent = error instanceof Error ? error.message : String(error);
        document.documentElement.dataset.ready = "failed";
      },
    );
}
