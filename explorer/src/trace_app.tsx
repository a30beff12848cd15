/** The page of a recorded program: lanes of ranks, messages, supersteps, the critical path. */

import { useEffect, useMemo, useRef } from "preact/hooks";

import { type Kind, KINDS, type Stretch, type Trace } from "./data/trace";
import { count, many, percent, size, span } from "./data/units";
import { sheetOf } from "./draw/canvas";
import { Head } from "./head";
import { type Go, type Place, TRACE_VIEWS, usePlace } from "./place";
import { useColours } from "./views/colours";
import { type Column, List, sorted } from "./views/list";

const VIEW_NAMES: Record<(typeof TRACE_VIEWS)[number], string> = { lanes: "Lanes", path: "Critical path", messages: "Messages", supersteps: "Supersteps" };
const COLOURS: Record<Kind | "wire", string> = { computing: "--flow-6", sending: "--flow-2", waiting: "--flow-7", collective: "--flow-1", wire: "--flow-4" };
const LANE = 12;
/** Calls that the details of a rank list. */
const MOST = 200;

export function TraceApp({ traces }: { traces: readonly Trace[] }) {
  const [place, go] = usePlace();
  useEffect(() => {
    performance.mark("shown");
    document.documentElement.dataset.ready = "yes";
  }, []);
  const [trace] = traces;
  const view = (TRACE_VIEWS as readonly string[]).includes(place.view) ? place.view : "lanes";
  const path = useMemo(() => trace.path(), [trace]);
  const chosen = Number(/^lane:(\d+)$/.exec(place.about)?.[1] ?? NaN);
  const names = traces.map((one, number) => <>{number > 0 && " beside "}<b key={one.name}>{one.name}</b></>);
  return (
    <>
      <Head title={names} views={TRACE_VIEWS.map((it) => [it, VIEW_NAMES[it]] as const)} view={view} go={go}>
        <span class="quiet">{many(trace.ranks, "rank")}, {many(trace.length, "call")}, {span(trace.last)}</span>
      </Head>
      <main class={chosen < trace.ranks ? "split" : ""}>
        <section id="view">
          {view === "lanes" && traces.map((one) => <Lanes key={one.name} trace={one} path={one === trace ? path : []} chosen={chosen} place={place} go={go} />)}
          {view === "path" && <PathView trace={trace} path={path} go={go} />}
          {view === "messages" && <MessagesView trace={trace} place={place} go={go} />}
          {view === "supersteps" && <SuperstepsView trace={trace} place={place} go={go} />}
        </section>
        <div class="aside">{chosen < trace.ranks && <RankDetails trace={trace} rank={chosen} place={place} go={go} />}</div>
      </main>
    </>
  );
}

interface LanesProps {
  readonly trace: Trace;
  readonly path: readonly Stretch[];
  readonly chosen: number;
  readonly place: Place;
  readonly go: Go;
}

function Lanes({ trace, path, chosen, place, go }: LanesProps) {
  const canvas = useRef<HTMLCanvasElement>(null);
  useColours();
  const down = useRef(NaN);
  const [from, to] = [place.from ?? 0, place.to ?? trace.last];
  useEffect(() => {
    const sheet = sheetOf(canvas.current);
    if (sheet === null) return;
    const { pen, width, colour } = sheet;
    const x = (time: number): number => ((time - from) / (to - from)) * width;
    const bar = (rank: number, kind: Kind, start: number, end: number): void => {
      if (end < from || start > to) return;
      pen.fillStyle = colour(COLOURS[kind]);
      pen.fillRect(x(start), rank * LANE + 1, Math.max(x(end) - x(start), 0.3), LANE - 2);
    };
    for (let rank = 0; rank < trace.ranks; rank++) {
      let before = 0;
      for (let row = trace.first[rank]; row < trace.first[rank + 1]; row++) {
        bar(rank, "computing", before, trace.start[row]);
        bar(rank, trace.kind(row), trace.start[row], trace.end[row]);
        before = Math.max(before, trace.end[row]);
      }
    }
    pen.strokeStyle = colour("--warn");
    pen.lineWidth = 1.5;
    pen.beginPath();
    for (const one of path) {
      pen.moveTo(x(one.start), (one.from + 0.5) * LANE);
      pen.lineTo(x(one.end), (one.rank + 0.5) * LANE);
    }
    pen.stroke();
    if (chosen < trace.ranks) {
      pen.strokeStyle = colour("--accent");
      pen.lineWidth = 2;
      pen.strokeRect(1, chosen * LANE, width - 2, LANE);
    }
  });
  const at = (event: PointerEvent): [number, number] => {
    const box = (event.currentTarget as HTMLElement).getBoundingClientRect();
    return [from + ((event.clientX - box.left) / box.width) * (to - from), Math.floor((event.clientY - box.top) / LANE)];
  };
  const up = (event: PointerEvent): void => {
    const [time, rank] = at(event);
    const [begin, finish] = [Math.min(down.current, time), Math.max(down.current, time)];
    if (finish - begin > (to - from) / 100) go({ from: begin, to: finish });
    else if (rank < trace.ranks) go({ about: `lane:${rank}` });
    down.current = NaN;
  };
  return (
    <>
      <p class="hint">
        {KINDS.map((kind) => <span key={kind}><i class="key" style={{ background: `var(${COLOURS[kind]})` }} /> {kind}{" "}</span>)}
        {path.length > 0 && <span><i class="key" style={{ background: "var(--warn)" }} /> critical path </span>}
        <label>
          Rank{" "}
          <input type="number" min="0" max={trace.ranks - 1} value={chosen < trace.ranks ? chosen : ""} onChange={(event) => event.currentTarget.value !== "" && go({ about: `lane:${event.currentTarget.value}` })} />
        </label>
      </p>
      <p class="controls">
        <output>{span(from)} to {span(to)}</output>
        {place.from !== null && <button onClick={() => go({ from: null, to: null })}>All of it</button>}
        <span class="quiet">Drag over a time to look closer, click a rank.</span>
      </p>
      <div class="scrolls">
        <canvas ref={canvas} class="ranks" style={{ height: `${trace.ranks * LANE}px`, touchAction: "pan-y" }} role="img" aria-label={`What the ${trace.ranks} ranks of ${trace.name} did when`}
          onPointerDown={(event) => { [down.current] = at(event); }} onPointerUp={up} />
      </div>
    </>
  );
}

function PathView({ trace, path, go }: { trace: Trace; path: readonly Stretch[]; go: Go }) {
  const kinds = new Map<string, number>();
  const byRank = new Map<number, number>();
  for (const { kind, rank, start, end } of path) {
    kinds.set(kind, (kinds.get(kind) ?? 0) + end - start);
    byRank.set(rank, (byRank.get(rank) ?? 0) + end - start);
  }
  const whole = path.reduce((sum, { start, end }) => sum + end - start, 0);
  const order = [...kinds].sort(([, x], [, y]) => y - x);
  const longest = path.map((_, place) => place).sort((x, y) => path[y].end - path[y].start - (path[x].end - path[x].start)).slice(0, 50);
  return (
    <>
      <p>What the program's time of {span(trace.last)} hangs on: whoever is faster elsewhere changes nothing.</p>
      <div class="bar" role="img" aria-label={order.map(([kind, time]) => `${kind} ${percent(time / whole)}`).join(", ")}>
        {order.map(([kind, time]) => <i key={kind} title={`${kind}: ${span(time)}`} style={{ flexGrow: time, background: `var(${COLOURS[kind as Kind]})` }} />)}
      </div>
      <table class="plain wide" aria-label="Kinds">
        <tbody>
          {order.map(([kind, time]) => (
            <tr key={kind}><td class="text"><i class="key" style={{ background: `var(${COLOURS[kind as Kind]})` }} />{kind}</td><td>{span(time)}</td><td>{percent(time / whole)}</td></tr>
          ))}
        </tbody>
      </table>
      <h3>Ranks on it</h3>
      <table class="plain wide" aria-label="Ranks on the path">
        <tbody>
          {[...byRank].sort(([, x], [, y]) => y - x).slice(0, 12).map(([rank, time]) => (
            <tr key={rank}><td class="text"><button class="link" onClick={() => go({ about: `lane:${rank}` })}>rank {rank}</button></td><td>{span(time)}</td><td>{percent(time / whole)}</td></tr>
          ))}
        </tbody>
      </table>
      <h3>Its longest stretches</h3>
      <table class="plain wide" aria-label="Stretches">
        <thead><tr><th class="text">Where</th><th class="text">What</th><th>From</th><th>For</th></tr></thead>
        <tbody>
          {longest.map((place) => {
            const { kind, rank, from, start, end } = path[place];
            return (
              <tr key={place}>
                <td class="text"><button class="link" onClick={() => go({ view: "lanes", about: `lane:${rank}`, from: Math.max(0, start - (end - start)), to: end + (end - start) })}>rank {rank}</button></td>
                <td class="text">{kind}{from !== rank && `, from rank ${from}`}</td>
                <td>{span(start)}</td><td>{span(end - start)}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </>
  );
}

function MessagesView({ trace, place, go }: { trace: Trace; place: Place; go: Go }) {
  const pairs = useMemo(() => trace.pairs(), [trace]);
  const columns: Column[] = [
    { key: "from", title: "From", cell: (row) => pairs[row].from, by: (row) => pairs[row].from },
    { key: "to", title: "To", cell: (row) => pairs[row].to, by: (row) => pairs[row].to },
    { key: "messages", title: "Messages", cell: (row) => count(pairs[row].messages), by: (row) => pairs[row].messages },
    { key: "bytes", title: "Bytes", cell: (row) => size(pairs[row].bytes), by: (row) => pairs[row].bytes },
    { key: "mean", title: "Mean size", cell: (row) => size(pairs[row].bytes / pairs[row].messages), by: (row) => pairs[row].bytes / pairs[row].messages },
  ];
  const sort = place.sort || "-bytes";
  const rows = useMemo(() => sorted(pairs.map((_, row) => row), columns, sort), [pairs, sort]);
  if (pairs.length === 0) return <p>The ranks send no messages; they call collectives alone.</p>;
  return (
    <>
      <Matrix trace={trace} bytes={pairs} />
      <List label="Pairs" rows={rows} columns={columns} sort={sort} onSort={(next) => go({ sort: next })} onRow={(row) => go({ about: `lane:${pairs[row].from}` })} />
    </>
  );
}

function Matrix({ trace, bytes }: { trace: Trace; bytes: ReturnType<Trace["pairs"]> }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  useEffect(() => {
    const area = canvas.current;
    const pen = area?.getContext("2d");
    if (!area || !pen) return;
    const cell = Math.max(1, Math.floor(300 / trace.ranks));
    area.width = area.height = cell * trace.ranks;
    const style = getComputedStyle(area);
    const most = Math.log1p(Math.max(...bytes.map((pair) => pair.bytes)));
    for (const pair of bytes) {
      const step = Math.min(5, 1 + Math.floor((5 * Math.log1p(pair.bytes)) / most));
      pen.fillStyle = style.getPropertyValue(`--scale-${step}`);
      pen.fillRect(pair.to * cell, pair.from * cell, cell, cell);
    }
  });
  return (
    <figure>
      <canvas ref={canvas} role="img" aria-label="Who sends how much to whom" style={{ maxWidth: "100%", border: "1px solid var(--line)" }} />
      <figcaption class="quiet">Rows send, columns receive; darker is more, by the logarithm of bytes.</figcaption>
    </figure>
  );
}

function SuperstepsView({ trace, place, go }: { trace: Trace; place: Place; go: Go }) {
  const steps = useMemo(() => trace.supersteps(), [trace]);
  const columns: Column[] = [
    { key: "number", title: "Superstep", cell: (row) => count(steps[row].number), by: (row) => steps[row].number },
    { key: "ranks", title: "Ranks", cell: (row) => count(steps[row].ranks), by: (row) => steps[row].ranks },
    { key: "messages", title: "Messages", cell: (row) => count(steps[row].messages), by: (row) => steps[row].messages },
    { key: "most", title: "Most of a rank", cell: (row) => count(steps[row].most), by: (row) => steps[row].most },
    { key: "bytes", title: "Bytes", cell: (row) => size(steps[row].bytes), by: (row) => steps[row].bytes },
    { key: "start", title: "From", cell: (row) => span(steps[row].start), by: (row) => steps[row].start },
    { key: "took", title: "For", cell: (row) => span(steps[row].end - steps[row].start), by: (row) => steps[row].end - steps[row].start },
  ];
  const sort = place.sort || "number";
  const rows = useMemo(() => sorted(steps.map((_, row) => row), columns, sort), [steps, sort]);
  if (steps.length === 0) return <p>The ranks send no messages; they call collectives alone.</p>;
  const look = (row: number): void => {
    const { start, end } = steps[row];
    go({ view: "lanes", from: start, to: end });
  };
  return (
    <>
      <p class="hint">What a rank sends until a call blocks it. A row holds the n-th supersteps of all ranks; a click shows them on the lanes.</p>
      <List label="Supersteps" rows={rows} columns={columns} sort={sort} onSort={(next) => go({ sort: next })} onRow={look} />
    </>
  );
}

function RankDetails({ trace, rank, place, go }: { trace: Trace; rank: number; place: Place; go: Go }) {
  const [from, to] = [place.from ?? 0, place.to ?? trace.last];
  const times = useMemo(() => trace.times(rank, from, to), [trace, rank, from, to]);
  const whole = KINDS.reduce((sum, kind) => sum + times[kind], 0);
  const rows: number[] = [];
  for (let row = trace.first[rank]; row < trace.first[rank + 1]; row++) if (trace.end[row] >= from && trace.start[row] <= to) rows.push(row);
  const order = [...rows].sort((x, y) => trace.end[y] - trace.start[y] - (trace.end[x] - trace.start[x])).slice(0, MOST);
  return (
    <aside id="details">
      <button class="close" aria-label="Close" onClick={() => go({ about: "" })}>×</button>
      <h2>Rank {rank}</h2>
      <div class="bar" role="img" aria-label={KINDS.map((kind) => `${kind} ${percent(times[kind] / whole)}`).join(", ")}>
        {KINDS.map((kind) => <i key={kind} title={kind} style={{ flexGrow: times[kind], background: `var(${COLOURS[kind]})` }} />)}
      </div>
      <table class="plain" aria-label="Time">
        <tbody>
          {KINDS.map((kind) => <tr key={kind}><td class="text"><i class="key" style={{ background: `var(${COLOURS[kind]})` }} />{kind}</td><td>{span(times[kind])}</td><td>{percent(times[kind] / whole)}</td></tr>)}
        </tbody>
      </table>
      <h3>Its longest calls</h3>
      <table class="plain" aria-label="Calls">
        <thead><tr><th class="text">Call</th><th>At</th><th>Took</th><th class="text">Waited for</th></tr></thead>
        <tbody>
          {order.map((row) => {
            const cause = trace.cause(row);
            return (
              <tr key={row}>
                <td class="text">{trace.action(row)}{Number.isNaN(trace.bytes[row]) ? "" : ` ${size(trace.bytes[row])}`}</td>
                <td>{span(trace.start[row])}</td><td>{span(trace.end[row] - trace.start[row])}</td>
                <td class="text">{cause >= 0 && <><button class="link" onClick={() => go({ about: `lane:${trace.rank[cause]}` })}>rank {trace.rank[cause]}</button>, {span(trace.start[cause] - trace.start[row])} late</>}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
      {rows.length > MOST && <p class="quiet">The longest {MOST} of {count(rows.length)}.</p>}
    </aside>
  );
}
