/** Where two runs differ most: two folders, or two schemes of one. */

import { useEffect, useMemo, useState } from "preact/hooks";

import type { Folder, Run } from "../data/folder";
import { type Difference, differences, figuresOf } from "../data/queries";
import type { Rows } from "../data/table";
import { count, size, span, times } from "../data/units";
import type { Go } from "../place";

interface Props {
  readonly left: Folder;
  readonly right: Folder;
  readonly run: Run;
  readonly go: Go;
}

const WORDS: Record<Difference["unit"], (value: number) => string> = { ps: span, bytes: size, count, factor: times };

interface Both {
  readonly figures: ReturnType<typeof figuresOf>;
  readonly ports: Rows;
}

async function read(folder: Folder, run: Run): Promise<Both> {
  const [flows, ports, jobs] = await Promise.all(["flows", "ports", "jobs"].map((table) => folder.rows(table, run)));
  if (flows === null || ports === null) throw new Error(`${folder.name} has no flows`);
  return { figures: figuresOf(flows, ports, jobs), ports };
}

export function CompareView({ left, right, run, go }: Props) {
  const others = left === right ? left.schemes.filter((scheme) => scheme !== run.scheme) : right.schemes;
  const [other, setOther] = useState("");
  const scheme = others.includes(other) ? other : others.includes(run.scheme) ? run.scheme : (others[0] ?? "");
  const [both, setBoth] = useState<readonly [Both, Both] | null>(null);
  const seed = right.seeds(scheme).includes(run.seed) ? run.seed : (right.seeds(scheme)[0] ?? NaN);
  useEffect(() => {
    let current = true;
    setBoth(null);
    Promise.all([read(left, run), read(right, { scheme, seed })]).then(
      (found) => current && setBoth(found),
      () => undefined,
    );
    return () => {
      current = false;
    };
  }, [left, right, run.scheme, run.seed, scheme, seed]);
  const found = useMemo(() => both && differences(scheme, both[0].figures, both[1].figures), [both, scheme]);
  const ports = useMemo(() => both && apart(left, both[0].ports, both[1].ports), [both]);
  if (others.length === 0) return <p class="hint">One scheme alone: raddle view DIR OTHER shows two folders side by side.</p>;
  const names = left === right ? [run.scheme, scheme] : [`${left.name}: ${run.scheme}`, `${right.name}: ${scheme}`];
  return (
    <>
      <p class="controls">
        <label>
          {names[0]}, against{" "}
          <select value={scheme} onChange={(event) => setOther(event.currentTarget.value)}>
            {others.map((name) => <option key={name}>{name}</option>)}
          </select>
        </label>
        {seed !== run.seed && <output>seed {run.seed} against seed {seed}</output>}
      </p>
      {found === null && <p>Reading…</p>}
      {found?.length === 0 && <p>No figure differs.</p>}
      {found !== null && found.length > 0 && (
        <table class="plain wide" id="differences" aria-label="Where they differ most">
          <thead>
            <tr><th class="text">Figure, the largest ratio first</th><th>{names[0]}</th><th>{names[1]}</th><th>Ratio</th></tr>
          </thead>
          <tbody>
            {found.map(({ what, unit, left: a, right: b }) => (
              <tr key={what}>
                <td class="text">{what}</td>
                <td>{WORDS[unit](a)}</td>
                <td>{WORDS[unit](b)}</td>
                <td>{times(b / a)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {ports !== null && ports.length > 0 && (
        <>
          <h3>Ports whose longest queues differ most</h3>
          <table class="plain wide" aria-label="Ports that differ most">
            <tbody>
              {ports.map(({ name, way, a, b }) => (
                <tr key={name}>
                  <td class="text"><button class="link" onClick={() => go({ about: `port:${name}` })}>{way}</button></td>
                  <td>{size(a)}</td>
                  <td>{size(b)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </>
      )}
    </>
  );
}

const MOST_PORTS = 12;

/** Ports of two runs over one fabric by the difference of their longest queues. */
function apart({ fabric }: Folder, left: Rows, right: Rows): { name: string; way: string; a: number; b: number }[] {
  const [node, port] = [left.numbers("node"), left.numbers("port")];
  const [there, number] = [right.numbers("node"), right.numbers("port")];
  if (left.length !== right.length) return [];
  const [a, b] = [left.numbers("max_queue_bytes"), right.numbers("max_queue_bytes")];
  const rows = Array.from({ length: left.length }, (_, row) => row).filter(
    (row) => node[row] === there[row] && port[row] === number[row] && a[row] !== b[row],
  );
  rows.sort((x, y) => Math.abs(a[y] - b[y]) - Math.abs(a[x] - b[x]));
  return rows.slice(0, MOST_PORTS).map((row) => ({
    name: fabric.portName(node[row], port[row]),
    way: fabric.way(node[row], port[row]),
    a: a[row],
    b: b[row],
  }));
}
