/** What a time was spent on: a bar, and the parts with links to their ports. */

import type { Part } from "../data/queries";
import { percent, span } from "../data/units";
import type { Go } from "../place";

/** Kinds of causes, in the order of the bar. Each has a colour and a pattern of its own. */
const CAUSES: Record<string, string> = {
  computing: "flow-6",
  host: "flow-3",
  memory: "flow-5",
  start: "flow-5",
  transfer: "flow-2",
  collective: "flow-1",
  rails: "flow-1",
  queue: "flow-7",
  pause: "flow-4",
  pacing: "flow-8",
  retransmission: "warn",
};

/** Name of a cause's colour, for who draws on a canvas. */
export const colourName = (cause: string): string => `--${CAUSES[cause] ?? "quiet"}`;
export const colourOf = (cause: string): string => `var(${colourName(cause)})`;

const MOST = 12;

export function Parts({ parts, go, label }: { parts: readonly Part[]; go: Go; label: string }) {
  const whole = parts.reduce((sum, part) => sum + part.time, 0);
  const byCause = new Map<string, number>();
  for (const part of parts) byCause.set(part.cause, (byCause.get(part.cause) ?? 0) + part.time);
  const order = [...byCause].sort(([, a], [, b]) => b - a);
  return (
    <>
      <div class="bar" role="img" aria-label={`${label}: ${order.map(([cause, time]) => `${cause} ${percent(time / whole)}`).join(", ")}`}>
        {order.map(([cause, time]) => (
          <i key={cause} title={`${cause}: ${span(time)}`} style={{ flexGrow: time, background: colourOf(cause) }} />
        ))}
      </div>
      <table class="plain" aria-label={label}>
        <tbody>
          {parts.slice(0, MOST).map((part, place) => (
            <tr key={place}>
              <td class="text">
                <i class="key" style={{ background: colourOf(part.cause) }} />
                {part.cause}
                {part.culprit && <> behind {part.culprit}</>}
                {part.port && (
                  <>
                    {" at "}
                    <button class="link" onClick={() => go({ about: `port:${part.port}` })}>{part.port}</button>
                  </>
                )}
              </td>
              <td>{span(part.time)}</td>
              <td>{percent(part.time / whole)}</td>
            </tr>
          ))}
          {parts.length > MOST && (
            <tr>
              <td class="text">{parts.length - MOST} smaller ones</td>
              <td>{span(parts.slice(MOST).reduce((sum, part) => sum + part.time, 0))}</td>
              <td />
            </tr>
          )}
        </tbody>
      </table>
    </>
  );
}
