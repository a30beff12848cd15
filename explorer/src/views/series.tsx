/** Lines over time, drawn by uPlot. */

import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";

import { coloursOf } from "../draw/canvas";
import { useColours } from "./colours";

interface Props {
  /** µs. */
  readonly x: readonly number[];
  readonly series: readonly { readonly name: string; readonly values: readonly number[]; readonly colour: string }[];
  readonly height: number;
  /** Called with the span that was dragged over, µs. */
  readonly onSpan?: (from: number, to: number) => void;
}

export function Series({ x, series, height, onSpan }: Props) {
  const place = useRef<HTMLDivElement>(null);
  const colours = useColours();
  useEffect(() => {
    const box = place.current;
    if (box === null) return undefined;
    const colour = coloursOf(box);
    // Milliseconds where there are many microseconds, and seconds where there are many of these.
    const last = x[x.length - 1] ?? 0;
    const [unit, factor] = last >= 5e6 ? ["s", 1e6] : last >= 5000 ? ["ms", 1000] : ["µs", 1];
    const axis = { stroke: colour("--quiet"), grid: { stroke: colour("--grid"), width: 1 }, ticks: { stroke: colour("--grid") } };
    const options: uPlot.Options = {
      width: box.clientWidth,
      height,
      scales: { x: { time: false } },
      cursor: { drag: { x: true, y: false, setScale: false } },
      axes: [
        { ...axis, values: (_, ticks) => ticks.map((tick) => `${tick / factor} ${unit}`) },
        // A second line has a scale of its own, on the right.
        ...series.map(({ colour: own }, place) => ({
          ...axis, scale: `y${place}`, side: place === 0 ? 3 : 1, stroke: colour(own), size: 70, grid: { ...axis.grid, show: place === 0 },
        })),
      ],
      series: [
        { label: unit, value: (_, told: number | null) => (told === null ? "–" : String(told / factor)) },
        ...series.map(({ name, colour: own }, place) => ({ label: name, scale: `y${place}`, stroke: colour(own), width: 1.5, points: { show: false } })),
      ],
      hooks: {
        setSelect: [
          (plot) => {
            const { left, width } = plot.select;
            if (onSpan && width > 4) onSpan(plot.posToVal(left, "x"), plot.posToVal(left + width, "x"));
            plot.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
          },
        ],
      },
    };
    const plot = new uPlot(options, [x as number[], ...series.map(({ values }) => values as number[])], box);
    const watch = new ResizeObserver(() => plot.setSize({ width: box.clientWidth, height }));
    watch.observe(box);
    return () => {
      watch.disconnect();
      plot.destroy();
    };
  }, [x, series, height, colours]);
  return <div class="series" ref={place} />;
}
