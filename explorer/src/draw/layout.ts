/** Where nodes of a fabric stand: levels one above the other, hosts at the bottom, neighbours below each other. */

import type { Fabric } from "../data/fabric";

/** Fabrics of more nodes are shown as a matrix, and pod by pod. */
export const MOST_NODES = 3000;
/** Distance of two hosts in units of the picture. */
export const STEP = 12;
/** Width of a picture over its height. */
const ASPECT = 2.1;
/** Levels are this far apart at least. */
const LEAST_ROW = 60;

export interface Spot {
  readonly node: number;
  readonly x: number;
  readonly y: number;
}

export interface Layout {
  readonly spots: readonly Spot[];
  readonly at: ReadonlyMap<number, Spot>;
  readonly width: number;
  readonly height: number;
}

/** A place for each of these nodes. */
export function layoutOf(fabric: Fabric, nodes: readonly number[]): Layout {
  const levels: number[][] = [];
  for (const node of nodes) (levels[fabric.level[node]] ??= []).push(node);
  const widest = Math.max(1, ...levels.map((level) => level?.length ?? 0));
  const width = widest * STEP;
  const row = Math.max(LEAST_ROW, width / ASPECT / Math.max(1, levels.length - 1));
  const height = Math.max(1, levels.length - 1) * row;
  const spots: Spot[] = [];
  levels.forEach((level, number) => {
    const gap = width / level.length;
    level.forEach((node, place) => {
      spots.push({ node, x: (place + 0.5) * gap, y: height - number * row });
    });
  });
  return { spots, at: new Map(spots.map((spot) => [spot.node, spot])), width, height };
}

/** What hangs together without the top level: pods, each in order of its nodes. The top level belongs to none. */
export function podsOf(fabric: Fabric): { pods: number[][]; podOf: Int32Array; top: number[] } {
  const highest = fabric.levels - 1;
  const parent = Int32Array.from({ length: fabric.nodes }, (_, node) => node);
  const root = (node: number): number => {
    let at = node;
    while (parent[at] !== at) {
      parent[at] = parent[parent[at]];
      at = parent[at];
    }
    return at;
  };
  for (const [{ node, peer }] of fabric.links) {
    if (fabric.level[node] === highest || fabric.level[peer] === highest) continue;
    const [a, b] = [root(node), root(peer)];
    if (a !== b) parent[Math.max(a, b)] = Math.min(a, b);
  }
  const podOf = new Int32Array(fabric.nodes).fill(-1);
  const pods: number[][] = [];
  const numbers = new Map<number, number>();
  for (let node = 0; node < fabric.nodes; node++) {
    if (fabric.level[node] === highest) continue;
    const own = root(node);
    let number = numbers.get(own);
    if (number === undefined) {
      number = pods.length;
      numbers.set(own, number);
      pods.push([]);
    }
    podOf[node] = number;
    pods[number].push(node);
  }
  return { pods, podOf, top: fabric.byLevel[highest] };
}
