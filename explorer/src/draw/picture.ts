/** The picture of a fabric: links coloured by what was measured, nodes, and names where there is room. */

import { type Fabric, type Port, portKey } from "../data/fabric";
import { type Measured, stepOf } from "../data/measures";
import { type Colours, type Sheet, sized } from "./canvas";
import { type Layout, STEP } from "./layout";

export type Link = readonly [Port, Port];

/** What a picture shows. */
export interface Scene {
  readonly fabric: Fabric;
  readonly layout: Layout;
  readonly links: readonly Link[];
  readonly measured: Measured;
  /** Nodes with a frame. */
  readonly chosen: readonly number[];
  /** Ports drawn above the others, as those of a tree. */
  readonly marked: readonly Port[];
}

/** Which part of it: where the layout's origin lies on the sheet, and pixels per unit of the layout. */
export interface Look {
  readonly x: number;
  readonly y: number;
  readonly zoom: number;
}

export const valueOf = (measured: Measured, port: Port): number => measured.values.get(portKey(port.node, port.port)) ?? 0;

/** The direction of a link that has more. */
export const higher = (measured: Measured, [there, back]: Link): Port => (valueOf(measured, back) > valueOf(measured, there) ? back : there);

/** Part of the sheet's size that is painted beyond each of its edges. */
const MARGIN = 0.5;

/**
 * Paints a picture with a margin around what is seen, and moves that painting as long as it covers the sheet: thousands
 * of strokes take longer than a frame.
 */
export class Painter {
  private readonly canvas = document.createElement("canvas");
  private painted: { readonly scene: Scene; readonly look: Look; readonly sheet: Sheet; readonly text: string } | null = null;

  show(sheet: Sheet, scene: Scene, look: Look): void {
    const [beyondX, beyondY] = [Math.round(sheet.width * MARGIN), Math.round(sheet.height * MARGIN)];
    const text = sheet.colour("--text");
    let old = this.painted;
    const covers =
      old !== null && old.scene === scene && old.text === text && old.look.zoom === look.zoom &&
      old.sheet.width === sheet.width && old.sheet.height === sheet.height && old.sheet.scale === sheet.scale &&
      Math.abs(look.x - old.look.x) <= beyondX && Math.abs(look.y - old.look.y) <= beyondY;
    if (old === null || !covers) {
      const [width, height] = [sheet.width + 2 * beyondX, sheet.height + 2 * beyondY];
      sized(this.canvas, width * sheet.scale, height * sheet.scale);
      const pen = this.canvas.getContext("2d");
      if (pen === null) return;
      pen.setTransform(sheet.scale, 0, 0, sheet.scale, 0, 0);
      pen.clearRect(0, 0, width, height);
      paint({ ...sheet, pen, width, height }, scene, { ...look, x: look.x + beyondX, y: look.y + beyondY });
      this.painted = old = { scene, look, sheet, text };
    }
    const { pen, scale } = sheet;
    pen.setTransform(1, 0, 0, 1, 0, 0);
    pen.drawImage(this.canvas, Math.round((look.x - old.look.x - beyondX) * scale), Math.round((look.y - old.look.y - beyondY) * scale));
  }
}

function paint(sheet: Sheet, scene: Scene, look: Look): void {
  const { fabric, layout, links, measured, chosen, marked } = scene;
  const { pen, width, height, colour } = sheet;
  const stroke = (ports: Iterable<Port>): void => {
    pen.beginPath();
    for (const { node, peer } of ports) {
      const [a, b] = [layout.at.get(node), layout.at.get(peer)];
      if (a === undefined || b === undefined) continue;
      pen.moveTo(look.x + a.x * look.zoom, look.y + a.y * look.zoom);
      pen.lineTo(look.x + b.x * look.zoom, look.y + b.y * look.zoom);
    }
    pen.stroke();
  };
  // Links of one colour are one path.
  const steps: Port[][] = [[], [], [], [], [], []];
  for (const link of links) {
    const port = higher(measured, link);
    steps[stepOf(valueOf(measured, port), measured.most) + 1].push(port);
  }
  steps.forEach((own, step) => {
    pen.strokeStyle = step === 0 ? colour("--line") : colour(`--scale-${step}`);
    pen.lineWidth = step === 0 ? 0.6 : 0.6 + step * 0.35;
    stroke(own);
  });
  pen.strokeStyle = colour("--accent");
  pen.lineWidth = 2;
  stroke(marked);
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
  names(sheet, scene, look);
}

function names({ pen, width, height, colour }: Sheet, { fabric, layout }: Scene, look: Look): void {
  pen.fillStyle = colour("--text");
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

/** The whole picture as the text of an SVG file, in the colours of the page. */
export function svgOf({ fabric, layout, links, measured }: Scene, colour: Colours): string {
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
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="${box}">${lines.join("")}${nodes.join("")}</svg>\n`;
}
