/** The fabric: as a picture up to some thousand nodes, as a matrix of levels and pods beyond. */

import { useEffect, useMemo, useRef, useState } from "preact/hooks";

import { type Fabric, type Port, portKey } from "../data/fabric";
import { type Measured, stepOf } from "../data/measures";
import { save } from "../data/save";
import { many } from "../data/units";
import { type Layout, layoutOf, MOST_NODES, podsOf, STEP } from "../draw/layout";
import type { Go, Place } from "../place";

interface Props {
  readonly fabric: Fabric;
  readonly measured: Measured;
  /** What the colours stand for. */
  readonly title: string;
  /** Ports that are marked, as those of a tree. */
  readonly marked?: readonly Port[];
  readonly place: Place;
  readonly go: Go;
}

export function FabricView(props: Props) {
  const { fabric, place, go } = props;
  const pods = useMemo(() => podsOf(fabric), [fabric]);
  const large = fabric.nodes > MOST_NODES;
  const { pod } = place;
  const nodes = useMemo(() => {
    if (!large) return fabric.names.map((_, node) => node);
    return pod === null ? null : (pods.pods[pod] ?? null);
  }, [fabric, large, pod, pods]);
  return (
    <>
      {large && (
        <p class="hint">
          {nodes === null ? (
            <>
              {many(fabric.nodes, "node")}: a cell holds the links of one pod between two levels, coloured by the highest of them. Choose one to see its pod.
            </>
          ) : (
            <>
              Pod {pod} of {pods.pods.length}, {many(nodes.length, "node")}.{" "}
              <button onClick={() => go({ pod: null })}>All pods</button>
            </>
          )}
        </p>
      )}
      {nodes === null ? <Matrix {...props} pods={pods} /> : <Picture {...props} nodes={nodes} />}
      <Scale measured={props.measured} title={props.title} />
    </>
  );
}

function Scale({ measured, title }: { measured: Measured; title: string }) {
  return (
    <p class="scale">
      {title}: <span>0</span>
      {[1, 2, 3, 4, 5].map((step) => (
        <i key={step} style={{ background: `var(--scale-${step})` }} />
      ))}
      <span>{measured.words(measured.most)}</span>
    </p>
  );
}

interface Look {
  readonly x: number;
  readonly y: number;
  readonly zoom: number;
}

/** Distance in pixels within which a click meets a link or a node. */
const NEAR = 7;

function Picture({ fabric, measured, marked = [], place, go, nodes }: Props & { nodes: readonly number[] }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const layout = useMemo(() => layoutOf(fabric, nodes), [fabric, nodes]);
  const links = useMemo(() => fabric.links.filter(([{ node, peer }]) => layout.at.has(node) && layout.at.has(peer)), [fabric, layout]);
  const [look, setLook] = useState<Look | null>(null);
  const [hint, setHint] = useState("");
  const drag = useRef<{ x: number; y: number; look: Look; moved: boolean } | null>(null);
  const chosen = chosenOf(fabric, place.about);

  const whole = (): Look => {
    const { clientWidth: width, clientHeight: height } = canvas.current ?? { clientWidth: 800, clientHeight: 480 };
    const zoom = Math.min((width - 40) / layout.width, (height - 60) / Math.max(layout.height, 1));
    return { zoom, x: (width - layout.width * zoom) / 2, y: (height - layout.height * zoom) / 2 };
  };
  useEffect(() => setLook(whole()), [layout]);
  useEffect(() => {
    const place = canvas.current;
    if (place === null) return undefined;
    const watch = new ResizeObserver(() => setLook(whole()));
    watch.observe(place);
    return () => watch.disconnect();
  }, [layout]);
  useEffect(() => {
    if (canvas.current === null || look === null) return undefined;
    const frame = requestAnimationFrame(() => canvas.current && draw(canvas.current, fabric, layout, links, measured, look, chosen, marked));
    return () => cancelAnimationFrame(frame);
  });

  const spot = (event: MouseEvent): [number, number] => {
    const box = (event.currentTarget as HTMLElement).getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  const zoomed = (factor: number, x: number, y: number): void =>
    setLook((old) => old && { zoom: old.zoom * factor, x: x - (x - old.x) * factor, y: y - (y - old.y) * factor });
  const wheel = (event: WheelEvent): void => {
    event.preventDefault();
    zoomed(Math.exp(-event.deltaY / 400), ...spot(event));
  };
  const down = (event: PointerEvent): void => {
    if (look === null) return;
    canvas.current?.setPointerCapture(event.pointerId);
    drag.current = { x: event.clientX, y: event.clientY, look, moved: false };
  };
  const move = (event: PointerEvent): void => {
    const start = drag.current;
    if (start === null) {
      const met = look && meet(layout, links, look, ...spot(event));
      setHint(met ? wordsOf(fabric, measured, met) : "");
      return;
    }
    const [dx, dy] = [event.clientX - start.x, event.clientY - start.y];
    start.moved ||= Math.abs(dx) + Math.abs(dy) > 4;
    if (start.moved) setLook({ ...start.look, x: start.look.x + dx, y: start.look.y + dy });
  };
  const up = (event: PointerEvent): void => {
    const start = drag.current;
    drag.current = null;
    if (start?.moved || look === null) return;
    const met = meet(layout, links, look, ...spot(event));
    if (met !== null) go({ about: aboutOf(fabric, measured, met) });
  };
  const key = (event: KeyboardEvent): void => {
    const box = canvas.current;
    const moves: Record<string, [number, number]> = { ArrowLeft: [40, 0], ArrowRight: [-40, 0], ArrowUp: [0, 40], ArrowDown: [0, -40] };
    const by = moves[event.key];
    if (by !== undefined) setLook((old) => old && { ...old, x: old.x + by[0], y: old.y + by[1] });
    else if (event.key === "+" || event.key === "=") zoomed(1.25, (box?.clientWidth ?? 0) / 2, (box?.clientHeight ?? 0) / 2);
    else if (event.key === "-") zoomed(0.8, (box?.clientWidth ?? 0) / 2, (box?.clientHeight ?? 0) / 2);
    else if (event.key === "0") setLook(whole());
    else return;
    event.preventDefault();
  };
  return (
    <div class="picture">
      <canvas
        ref={canvas}
        tabIndex={0}
        role="img"
        aria-label="The fabric. Arrow keys move it, plus and minus zoom, 0 shows all of it. The view Ports has the same as a table."
        onWheel={wheel}
        onPointerDown={down}
        onPointerMove={move}
        onPointerUp={up}
        onKeyDown={key}
      />
      <output>{hint || "Drag to move, scroll to zoom, click a node or a link."}</output>
      <div class="tools">
        <button aria-label="Zoom in" onClick={() => zoomed(1.4, (canvas.current?.clientWidth ?? 0) / 2, (canvas.current?.clientHeight ?? 0) / 2)}>+</button>
        <button aria-label="Zoom out" onClick={() => zoomed(1 / 1.4, (canvas.current?.clientWidth ?? 0) / 2, (canvas.current?.clientHeight ?? 0) / 2)}>−</button>
        <button aria-label="Show all" onClick={() => setLook(whole())}>⤢</button>
        <button aria-label="Save as SVG" onClick={() => canvas.current && saveSvg(canvas.current, fabric, layout, links, measured)}>↓</button>
      </div>
    </div>
  );
}

type Met = { readonly node: number } | { readonly link: readonly [Port, Port] };

const valueOf = (measured: Measured, port: Port): number => measured.values.get(portKey(port.node, port.port)) ?? 0;

/** The direction of a link that has more. */
const higher = (measured: Measured, [there, back]: readonly [Port, Port]): Port =>
  valueOf(measured, back) > valueOf(measured, there) ? back : there;

function wordsOf(fabric: Fabric, measured: Measured, met: Met): string {
  if ("node" in met) return fabric.names[met.node];
  const [there, back] = met.link;
  return [there, back].map((port) => `${fabric.way(port.node, port.port)}: ${measured.words(valueOf(measured, port))}`).join(", ");
}

function aboutOf(fabric: Fabric, measured: Measured, met: Met): string {
  if ("node" in met) return `node:${fabric.names[met.node]}`;
  const port = higher(measured, met.link);
  return `port:${fabric.portName(port.node, port.port)}`;
}

/** Nodes that a selection marks. */
function chosenOf(fabric: Fabric, about: string): number[] {
  const [kind, ...rest] = about.split(":");
  const name = rest.join(":");
  if (kind === "node") return [fabric.node(name) ?? -1];
  const port = kind === "port" ? fabric.portOf(name) : null;
  if (port !== null) return [port.node, port.peer];
  return kind === "flow" ? rest.slice(0, 2).map(Number) : [];
}

function meet(layout: Layout, links: readonly (readonly [Port, Port])[], look: Look, x: number, y: number): Met | null {
  const screen = (node: number): [number, number] => {
    const spot = layout.at.get(node);
    return [look.x + (spot?.x ?? 0) * look.zoom, look.y + (spot?.y ?? 0) * look.zoom];
  };
  let [near, nearest]: [Met | null, number] = [null, NEAR];
  for (const { node } of layout.spots) {
    const [px, py] = screen(node);
    const distance = Math.hypot(px - x, py - y);
    if (distance < nearest) [near, nearest] = [{ node }, distance];
  }
  if (near !== null) return near;
  for (const link of links) {
    const [ax, ay] = screen(link[0].node);
    const [bx, by] = screen(link[0].peer);
    const long = (bx - ax) ** 2 + (by - ay) ** 2;
    const along = Math.max(0, Math.min(1, ((x - ax) * (bx - ax) + (y - ay) * (by - ay)) / (long || 1)));
    const distance = Math.hypot(ax + along * (bx - ax) - x, ay + along * (by - ay) - y);
    if (distance < nearest) [near, nearest] = [{ link }, distance];
  }
  return near;
}

function draw(
  canvas: HTMLCanvasElement,
  fabric: Fabric,
  layout: Layout,
  links: readonly (readonly [Port, Port])[],
  measured: Measured,
  look: Look,
  chosen: readonly number[],
  marked: readonly Port[],
): void {
  const scale = devicePixelRatio;
  const [width, height] = [canvas.clientWidth, canvas.clientHeight];
  if (canvas.width !== Math.round(width * scale)) canvas.width = Math.round(width * scale);
  if (canvas.height !== Math.round(height * scale)) canvas.height = Math.round(height * scale);
  const pen = canvas.getContext("2d");
  if (pen === null) return;
  const style = getComputedStyle(canvas);
  const colour = (name: string): string => style.getPropertyValue(name);
  pen.setTransform(scale, 0, 0, scale, 0, 0);
  pen.clearRect(0, 0, width, height);
  // Links of one colour are one path: thousands of strokes would take longer than a frame.
  const steps: (readonly [Port, Port])[][] = [[], [], [], [], [], []];
  for (const link of links) steps[stepOf(valueOf(measured, higher(measured, link)), measured.most) + 1].push(link);
  steps.forEach((own, step) => {
    pen.beginPath();
    for (const [{ node, peer }] of own) {
      const [a, b] = [layout.at.get(node), layout.at.get(peer)];
      if (a === undefined || b === undefined) continue;
      pen.moveTo(look.x + a.x * look.zoom, look.y + a.y * look.zoom);
      pen.lineTo(look.x + b.x * look.zoom, look.y + b.y * look.zoom);
    }
    pen.strokeStyle = step === 0 ? colour("--line") : colour(`--scale-${step}`);
    pen.lineWidth = step === 0 ? 0.6 : 0.6 + step * 0.35;
    pen.stroke();
  });
  pen.beginPath();
  for (const { node, peer } of marked) {
    const [a, b] = [layout.at.get(node), layout.at.get(peer)];
    if (a === undefined || b === undefined) continue;
    pen.moveTo(look.x + a.x * look.zoom, look.y + a.y * look.zoom);
    pen.lineTo(look.x + b.x * look.zoom, look.y + b.y * look.zoom);
  }
  pen.strokeStyle = colour("--accent");
  pen.lineWidth = 2;
  pen.stroke();
  const radius = Math.max(1.5, Math.min(7, (STEP * look.zoom) / 2.6));
  pen.fillStyle = colour("--text");
  for (const { node, x, y } of layout.spots) {
    const [px, py] = [look.x + x * look.zoom, look.y + y * look.zoom];
    if (px < -9 || py < -9 || px > width + 9 || py > height + 9) continue;
    const half = fabric.isHost(node) ? radius : Math.max(radius, 4);
    pen.fillRect(px - half, py - half, 2 * half, 2 * half);
  }
  pen.strokeStyle = colour("--accent");
  pen.lineWidth = 3;
  for (const node of chosen) {
    const spot = layout.at.get(node);
    if (spot !== undefined) pen.strokeRect(look.x + spot.x * look.zoom - 9, look.y + spot.y * look.zoom - 9, 18, 18);
  }
  labels(pen, fabric, layout, look, [width, height], colour("--text"));
}

/** The whole picture as a file, in the colours of the page. */
function saveSvg(canvas: HTMLCanvasElement, fabric: Fabric, layout: Layout, links: readonly (readonly [Port, Port])[], measured: Measured): void {
  const style = getComputedStyle(canvas);
  const colour = (name: string): string => style.getPropertyValue(name);
  const escaped = (text: string): string => text.replace(/[&<>]/g, (sign) => `&#${sign.charCodeAt(0)};`);
  const lines = links.map((link) => {
    const step = stepOf(valueOf(measured, higher(measured, link)), measured.most);
    const [a, b] = [layout.at.get(link[0].node), layout.at.get(link[0].peer)];
    return `<path d="M${a?.x} ${a?.y}L${b?.x} ${b?.y}" stroke="${colour(step < 0 ? "--line" : `--scale-${step + 1}`)}"/>`;
  });
  const nodes = layout.spots.map(
    ({ node, x, y }) => `<rect x="${x - 4}" y="${y - 4}" width="8" height="8" fill="${colour("--text")}"><title>${escaped(fabric.names[node])}</title></rect>`,
  );
  const box = `-10 -10 ${layout.width + 20} ${layout.height + 20}`;
  save("fabric.svg", "image/svg+xml", `<svg xmlns="http://www.w3.org/2000/svg" viewBox="${box}">${lines.join("")}${nodes.join("")}</svg>\n`);
}

/** Names where there is room for them. */
function labels(pen: CanvasRenderingContext2D, fabric: Fabric, layout: Layout, look: Look, [width, height]: [number, number], colour: string): void {
  pen.fillStyle = colour;
  pen.font = "11px system-ui, sans-serif";
  pen.textAlign = "center";
  const ends = new Map<number, number>();
  for (const { node, x, y } of layout.spots) {
    const [px, py] = [look.x + x * look.zoom, look.y + y * look.zoom];
    if (px < 0 || py < 0 || px > width || py > height) continue;
    const name = fabric.names[node];
    const half = name.length * 3.3 + 4;
    if (px - half < (ends.get(y) ?? -Infinity)) continue;
    ends.set(y, px + half);
    pen.fillText(name, px, fabric.isHost(node) ? py + 20 : py - 11);
  }
}

/** Levels by pods: the highest value of each cell's links, upwards and downwards. */
function Matrix({ fabric, measured, go, pods }: Props & { pods: ReturnType<typeof podsOf> }) {
  const rows = useMemo(() => cellsOf(fabric, pods), [fabric, pods]);
  return (
    <div class="matrix" role="table" aria-label="Links by level and pod">
      {rows.map(({ title, cells }) => (
        <div class="row" role="row" key={title}>
          <span class="title" role="rowheader">{title}</span>
          <div class="cells">
            {cells.map((keys, pod) => {
              const value = keys.reduce((most, key) => Math.max(most, measured.values.get(key) ?? 0), 0);
              const step = stepOf(value, measured.most);
              const words = `Pod ${pod}, ${title}: ${measured.words(value)}`;
              return (
                <span role="cell" key={pod}>
                  <button
                    aria-label={words}
                    title={words}
                    style={{ background: step < 0 ? "var(--grid)" : `var(--scale-${step + 1})` }}
                    onClick={() => go({ pod })}
                  />
                </span>
              );
            })}
          </div>
        </div>
      ))}
    </div>
  );
}

/** Ports of each pod by the levels that they lead from and to, the highest levels first. */
function cellsOf(fabric: Fabric, { pods, podOf }: ReturnType<typeof podsOf>): { title: string; cells: number[][] }[] {
  const rows = new Map<string, { order: number; cells: number[][] }>();
  for (const port of fabric.ports.values()) {
    const pod = podOf[port.node] >= 0 ? podOf[port.node] : podOf[port.peer];
    if (pod < 0) continue;
    const [from, to] = [fabric.level[port.node], fabric.level[port.peer]];
    const title = `${levelName(fabric, from)} → ${levelName(fabric, to)}`;
    let row = rows.get(title);
    if (row === undefined) {
      row = { order: -2 * Math.max(from, to) + (to > from ? 0 : 1), cells: pods.map(() => []) };
      rows.set(title, row);
    }
    row.cells[pod].push(portKey(port.node, port.port));
  }
  return [...rows].sort(([, a], [, b]) => a.order - b.order).map(([title, { cells }]) => ({ title, cells }));
}

function levelName(fabric: Fabric, level: number): string {
  const [first] = fabric.byLevel[level];
  return first !== undefined && fabric.isHost(first) ? "hosts" : `level ${level}`;
}
