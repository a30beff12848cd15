/** The fabric: as a picture up to some thousand nodes, as a matrix of levels and pods beyond. */

import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";

import { type Fabric, type Port, portKey } from "../data/fabric";
import { type Measured, stepOf } from "../data/measures";
import { save } from "../data/save";
import { many } from "../data/units";
import { coloursOf, sheetOf } from "../draw/canvas";
import { type Layout, layoutOf, MOST_NODES, podsOf } from "../draw/layout";
import { higher, type Link, type Look, Painter, type Scene, svgOf, valueOf } from "../draw/picture";
import type { Go, Place } from "../place";
import { useColours } from "./colours";

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

/** Distance in pixels within which a click meets a link or a node. */
const NEAR = 7;

const NONE: readonly Port[] = [];

function Picture({ fabric, measured, marked = NONE, place, go, nodes }: Props & { nodes: readonly number[] }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  useColours();
  const layout = useMemo(() => layoutOf(fabric, nodes), [fabric, nodes]);
  const links = useMemo(() => fabric.links.filter(([{ node, peer }]) => layout.at.has(node) && layout.at.has(peer)), [fabric, layout]);
  const [look, setLook] = useState<Look | null>(null);
  const [hint, setHint] = useState("");
  const drag = useRef<{ x: number; y: number; look: Look; moved: boolean } | null>(null);
  const painter = useMemo(() => new Painter(), []);
  const scene = useMemo(
    (): Scene => ({ fabric, layout, links, measured, marked, chosen: chosenOf(fabric, place.about) }),
    [fabric, layout, links, measured, marked, place.about],
  );

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
  // Before the frame is shown: an effect of its own would draw in every second frame only.
  useLayoutEffect(() => {
    const sheet = look && sheetOf(canvas.current);
    if (look !== null && sheet !== null) painter.show(sheet, scene, look);
  });

  const saveSvg = (): void => {
    if (canvas.current !== null) save("fabric.svg", "image/svg+xml", svgOf(scene, coloursOf(canvas.current)));
  };
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
        <button aria-label="Save as SVG" onClick={saveSvg}>↓</button>
      </div>
    </div>
  );
}

type Met = { readonly node: number } | { readonly link: Link };

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

function meet(layout: Layout, links: readonly Link[], look: Look, x: number, y: number): Met | null {
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
