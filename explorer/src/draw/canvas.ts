/** Canvases at the screen's resolution, in the colours of the page. */

/** The value of a custom property of the style, such as `--text`. */
export type Colours = (name: string) => string;

export interface Sheet {
  readonly pen: CanvasRenderingContext2D;
  /** In pixels of the page, as all that the pen is told. */
  readonly width: number;
  readonly height: number;
  /** Pixels of the screen in one of the page. */
  readonly scale: number;
  readonly colour: Colours;
}

/** An empty sheet as large as the canvas is shown; null where nothing can be drawn. */
export function sheetOf(canvas: HTMLCanvasElement | null): Sheet | null {
  const pen = canvas?.getContext("2d");
  if (!canvas || !pen) return null;
  const [width, height, scale] = [canvas.clientWidth, canvas.clientHeight, devicePixelRatio];
  sized(canvas, width * scale, height * scale);
  pen.setTransform(scale, 0, 0, scale, 0, 0);
  pen.clearRect(0, 0, width, height);
  return { pen, width, height, scale, colour: coloursOf(canvas) };
}

/** The colours of the page where an element stands. */
export function coloursOf(element: Element): Colours {
  const style = getComputedStyle(element);
  return (name) => style.getPropertyValue(name);
}

/** Gives a canvas its size in pixels of the screen, and keeps its memory where it has that size. */
export function sized(canvas: HTMLCanvasElement, width: number, height: number): void {
  if (canvas.width !== Math.round(width)) canvas.width = Math.round(width);
  if (canvas.height !== Math.round(height)) canvas.height = Math.round(height);
}
