// Builds the explorer into one page, python/raddle/report/explorer/explorer.html, which carries the licences
// of the libraries in it. scripts/build_explorer.py calls this where the sources have changed.

import { createHash } from "node:crypto";
import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const page = join(here, "../python/raddle/report/explorer/explorer.html");

const [digest] = process.argv.slice(2);
if (digest === undefined) throw new Error("use scripts/build_explorer.py, which tells the digest of the sources");

const built = await build({
  entryPoints: [join(here, "src/main.tsx")],
  bundle: true,
  minify: true,
  format: "esm",
  target: "es2022",
  jsx: "automatic",
  jsxImportSource: "preact",
  legalComments: "none",
  write: false,
  metafile: true,
});

/** Licences of the libraries that are part of the page. */
async function licences() {
  const inside = Object.keys(built.metafile.inputs).map((file) => /node_modules\/([^/]+)\//.exec(file)?.[1]);
  const texts = [];
  for (const name of [...new Set(inside)].filter(Boolean).sort()) {
    const folder = join(here, "node_modules", name);
    const { version, license } = JSON.parse(await readFile(join(folder, "package.json"), "utf8"));
    const file = (await readdir(folder)).find((entry) => /^licen[sc]e/i.test(entry));
    const text = file === undefined ? "" : await readFile(join(folder, file), "utf8");
    texts.push(`${name} ${version} (${license})\n\n${text.trim()}`);
  }
  // Two hyphens would end the comment that holds the texts.
  return texts.join("\n\n").replaceAll("--", "- -");
}

// An end tag within a text of the script would end the script.
const script = built.outputFiles[0].text.trim().replaceAll("</script", "<\\/script");
const uplot = await readFile(join(here, "node_modules/uplot/dist/uPlot.min.css"), "utf8");
const own = await readFile(join(here, "src/style.css"), "utf8");
const style = (await build({ stdin: { contents: `${uplot}\n${own}`, loader: "css" }, minify: true, write: false })).outputFiles[0].text.trim();
const parts = {
  "@STYLE@": style,
  "@SCRIPT@": script,
  "@SCRIPT_HASH@": createHash("sha256").update(script).digest("base64"),
};
let text = await readFile(join(here, "src/page.html"), "utf8");
for (const [place, part] of Object.entries(parts)) text = text.replaceAll(place, () => part);
await mkdir(dirname(page), { recursive: true });
const notes = `<!-- Libraries in this page\n\n${await licences()}\n-->\n<!-- sources ${digest} -->\n`;
await writeFile(page, `${text.trimEnd()}\n${notes}`);
