/** The explorer: looks into results folders of `raddle run` and `raddle route`. */

import { type ComponentChild, render } from "preact";

import { App } from "./app";
import { Folder } from "./data/folder";
import { Routes } from "./data/routes";
import { type Source, sources } from "./data/source";
import { RoutesApp } from "./routes_app";

async function page(all: readonly Source[]): Promise<ComponentChild> {
  const [first] = all;
  if (first?.has("trees.parquet")) return <RoutesApp routes={await Routes.open(first)} />;
  return <App folders={await Promise.all(all.map((source) => Folder.open(source)))} />;
}

const place = document.getElementById("app");
if (place !== null) {
  sources()
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
