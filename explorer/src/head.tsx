/** What stands above every page: its name, a search, what is chosen, the views. */

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";

import type { Fabric } from "./data/fabric";
import type { Go, View } from "./place";
import { tellColours } from "./views/colours";

interface Props {
  readonly title: ComponentChildren;
  /** Whose nodes are looked for; no search without one. */
  readonly fabric?: Fabric;
  readonly views: readonly (readonly [View, string])[];
  readonly view: View;
  readonly go: Go;
  /** Further choices. */
  readonly children: ComponentChildren;
}

export function Head({ title, fabric, views, view, go, children }: Props) {
  const [missing, setMissing] = useState(false);
  const look = (event: SubmitEvent): void => {
    event.preventDefault();
    if (fabric === undefined) return;
    const name = String(new FormData(event.currentTarget as HTMLFormElement).get("name")).trim();
    const found = fabric.node(name) !== null ? `node:${name}` : fabric.portOf(name) !== null ? `port:${name}` : "";
    setMissing(found === "");
    if (found !== "") go({ about: found });
  };
  return (
    <header>
      <h1>Raddle {title}</h1>
      {fabric !== undefined && (
        <form onSubmit={look} role="search">
          <input name="name" aria-label="Host, switch or port" placeholder="h17, s3 or s3:5" aria-invalid={missing} onInput={() => setMissing(false)} />
          <button>Go</button>
          {missing && <output class="fault">not in this fabric</output>}
        </form>
      )}
      {children}
      <Theme />
      <nav aria-label="Views">
        {views.map(([name, words]) => (
          <button key={name} aria-current={view === name ? "page" : undefined} onClick={() => go({ view: name, sort: "", filter: "", through: "" })}>
            {words}
          </button>
        ))}
      </nav>
    </header>
  );
}

export function Choice<T extends string | number>(props: { name: string; id: string; value: T; all: readonly T[]; choose: (value: string) => void }) {
  return (
    <label>
      {props.name}{" "}
      <select id={props.id} value={props.value} onChange={(event) => props.choose(event.currentTarget.value)}>
        {props.all.map((value) => <option key={value}>{value}</option>)}
      </select>
    </label>
  );
}

function Theme() {
  const toggle = (): void => {
    const dark = matchMedia("(prefers-color-scheme: dark)").matches;
    const root = document.documentElement;
    root.dataset.theme = (root.dataset.theme ?? (dark ? "dark" : "light")) === "dark" ? "light" : "dark";
    tellColours();
  };
  return <button aria-label="Light or dark" onClick={toggle}>◐</button>;
}
