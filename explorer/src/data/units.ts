/** Numbers as people read them. */

const NUMBER = new Intl.NumberFormat("en", { maximumSignificantDigits: 4 });
const WHOLE = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const NONE = "–";

/** A count: 1,234. */
export const count = (value: number): string => (Number.isFinite(value) ? WHOLE.format(value) : NONE);

/** Picoseconds: 1.234 µs. */
export function span(ps: number): string {
  if (!Number.isFinite(ps)) return NONE;
  const [factor, unit] = fitting(Math.abs(ps), [[1e12, "s"], [1e9, "ms"], [1e6, "µs"], [1e3, "ns"], [1, "ps"]]);
  return `${NUMBER.format(ps / factor)} ${unit}`;
}

/** Bytes: 1.5 KiB. */
export function size(bytes: number): string {
  if (!Number.isFinite(bytes)) return NONE;
  const [factor, unit] = fitting(Math.abs(bytes), [[2 ** 40, "TiB"], [2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"], [1, "B"]]);
  return `${NUMBER.format(bytes / factor)} ${unit}`;
}

/** Bits per second: 100 Gb/s. */
export function rate(bps: number): string {
  if (!Number.isFinite(bps)) return NONE;
  const [factor, unit] = fitting(Math.abs(bps), [[1e12, "Tb/s"], [1e9, "Gb/s"], [1e6, "Mb/s"], [1, "b/s"]]);
  return `${NUMBER.format(bps / factor)} ${unit}`;
}

/** A share: 12.3 %. */
export const percent = (share: number): string => (Number.isFinite(share) ? `${NUMBER.format(100 * share)} %` : NONE);

/** A factor: 1.25 ×. */
export const times = (factor: number): string => (Number.isFinite(factor) ? `${NUMBER.format(factor)} ×` : NONE);

/** 1 port, 2 ports. */
export const many = (number: number, thing: string): string => `${count(number)} ${thing}${number === 1 ? "" : "s"}`;

function fitting(value: number, units: [number, string][]): [number, string] {
  return units.find(([factor]) => value >= factor) ?? units[units.length - 1];
}
