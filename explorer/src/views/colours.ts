/** When the colours of the page change. What draws on a canvas has read them and must draw anew. */

import { useEffect, useState } from "preact/hooks";

const CHANGED = "colours";

/** Tells all that drew with the colours of before. */
export function tellColours(): void {
  dispatchEvent(new Event(CHANGED));
}

/** A number that changes with the page's colours, and has who uses it drawn anew. */
export function useColours(): number {
  const [times, setTimes] = useState(0);
  useEffect(() => {
    const changed = (): void => setTimes((before) => before + 1);
    const dark = matchMedia("(prefers-color-scheme: dark)");
    addEventListener(CHANGED, changed);
    dark.addEventListener("change", changed);
    return () => {
      removeEventListener(CHANGED, changed);
      dark.removeEventListener("change", changed);
    };
  }, []);
  return times;
}
