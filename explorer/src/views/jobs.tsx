/** Jobs of a run: their times, what these were spent on, and what their ranks did when. */

import { useEffect, useMemo, useRef } from "preact/hooks";

import { partAt } from "../data/queries";
import { save } from "../data/save";
import type { Rows } from "../data/table";
import { count, span, times } from "../data/units";
import { sheetOf } from "../draw/canvas";
import type { Go, Place } from "../place";
import { useColours } from "./colours";
import { colourName, Parts } from "./parts";

interface Props {
  readonly jobs: Rows;
  readonly blame: Rows | null;
  readonly ranks: Rows | null;
  readonly place: Place;
  readonly go: Go;
}

export function JobsView({ jobs, blame, ranks, place, go }: Props) {
  const name = jobs.words("job");
  const [number, start, took] = [jobs.numbers("ranks"), jobs.numbers("start_ps"), jobs.numbers("time_ps")];
  const [alone, slowdown] = [jobs.numbers("alone_ps"), jobs.numbers("slowdown")];
  const rows = Array.from({ length: jobs.length }, (_, row) => row);
  const latest = Math.max(...rows.map((row) => start[row] + (took[row] || 0)), 1);
  const chosen = /^(?:job|rank):([^:]+)/.exec(place.about)?.[1] ?? "";
  const parts = useMemo(() => {
    if (blame === null) return [];
    const own = blame.words("job");
    return Array.from({ length: blame.length }, (_, row) => row)
      .filter((row) => own.at(row) === chosen)
      .map((row) => partAt(blame, row))
      .sort((x, y) => y.time - x.time);
  }, [blame, chosen]);
  return (
    <>
      <div class="lanes" role="table" aria-label="Jobs">
        {rows.map((row) => (
          <div role="row" key={row} class={name.at(row) === chosen ? "chosen" : ""}>
            <button class="link" onClick={() => go({ about: `job:${name.at(row)}` })}>{name.at(row)}</button>
            <span class="track">
              <i style={{ left: `${(100 * start[row]) / latest}%`, width: `${(100 * (took[row] || latest - start[row])) / latest}%` }} />
            </span>
            <span>
              {count(number[row])} ranks, {span(took[row])}
              {!Number.isNaN(slowdown[row]) && <>, {times(slowdown[row])} alone ({span(alone[row])})</>}
            </span>
          </div>
        ))}
      </div>
      {chosen !== "" && parts.length > 0 && (
        <section>
          <h3>Where the time of {chosen} went</h3>
          <Parts parts={parts} go={go} label={`Time of ${chosen}`} />
        </section>
      )}
      {chosen !== "" && ranks !== null && <Lanes ranks={ranks} job={chosen} place={place} go={go} />}
      {chosen !== "" && ranks === null && (
        <p class="hint">What each rank did when was not recorded: [record] ranks = true.</p>
      )}
      {chosen === "" && <p class="hint">Choose a job to see what its time was spent on.</p>}
    </>
  );
}

const LANE = 12;
const LANE_COLOURS: Record<string, string> = { computing: "--flow-6", host: "--flow-3", start: "--line" };

/** What a stretch of a lane stands for: a rank's own doing, or the cause of most of its waiting. */
const standsFor = (doing: string, cause: string): string => (doing === "waiting" ? cause || "waiting" : doing);
const laneColour = (what: string): string => LANE_COLOURS[what] ?? colourName(what);

/** What the ranks of a job did when, a line each. */
function Lanes({ ranks, job, place, go }: { ranks: Rows; job: string; place: Place; go: Go }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  useColours();
  const own = useMemo(() => {
    const code = ranks.words("job").code(job);
    const jobs = ranks.words("job").codes;
    const [doing, cause] = [ranks.words("activity"), ranks.words("cause")];
    const rows: number[] = [];
    const kinds = new Set<string>();
    let [last, count] = [1, 0];
    for (let row = 0; row < ranks.length; row++) {
      if (jobs[row] !== code) continue;
      rows.push(row);
      kinds.add(standsFor(doing.at(row), cause.at(row)));
      last = Math.max(last, ranks.numbers("end_ps")[row]);
      count = Math.max(count, ranks.numbers("rank")[row] + 1);
    }
    return { rows, last, count, kinds: [...kinds].sort() };
  }, [ranks, job]);
  const [from, to] = [place.from ?? 0, place.to ?? own.last];
  const chosen = Number(/^rank:[^:]+:(\d+)$/.exec(place.about)?.[1] ?? -1);
  useEffect(() => {
    const sheet = sheetOf(canvas.current);
    if (sheet === null) return;
    const { pen, width, colour } = sheet;
    const [rank, start, end] = ["rank", "start_ps", "end_ps"].map((name) => ranks.numbers(name));
    const [doing, cause] = [ranks.words("activity"), ranks.words("cause")];
    for (const row of own.rows) {
      const x = ((start[row] - from) / (to - from)) * width;
      const wide = ((end[row] - start[row]) / (to - from)) * width;
      if (x > width || x + wide < 0) continue;
      pen.fillStyle = colour(laneColour(standsFor(doing.at(row), cause.at(row))));
      pen.fillRect(x, rank[row] * LANE + 1, Math.max(wide, 0.3), LANE - 2);
    }
    if (chosen >= 0) {
      pen.strokeStyle = colour("--accent");
      pen.lineWidth = 2;
      pen.strokeRect(1, chosen * LANE, width - 2, LANE);
    }
  });
  const choose = (event: MouseEvent): void => {
    const box = (event.currentTarget as HTMLElement).getBoundingClientRect();
    const rank = Math.floor((event.clientY - box.top) / LANE);
    if (rank < own.count) go({ about: `rank:${job}:${rank}` });
  };
  return (
    <section>
      <h3>Ranks of {job}</h3>
      <p class="hint">
        {own.kinds.map((name) => (
          <span key={name}>
            <i class="key" style={{ background: `var(${laneColour(name)})` }} /> {name in LANE_COLOURS || name === "waiting" ? name : `waiting: ${name}`}{" "}
          </span>
        ))}
        <label>
          Rank{" "}
          <input
            type="number"
            min="0"
            max={own.count - 1}
            value={chosen >= 0 ? chosen : ""}
            onChange={(event) => event.currentTarget.value !== "" && go({ about: `rank:${job}:${event.currentTarget.value}` })}
          />
        </label>
      </p>
      <p>
        <button onClick={() => saveLanes(ranks, job, own.rows)}>Save for Perfetto</button>
      </p>
      <div class="scrolls">
        <canvas ref={canvas} class="ranks" style={{ height: `${own.count * LANE}px` }} onClick={choose} role="img" aria-label={`What the ${own.count} ranks of ${job} did when`} />
      </div>
    </section>
  );
}

/** Lanes as a file that Perfetto and Chromium's tracing open (Trace Event Format, JSON object, times in µs). */
function saveLanes(ranks: Rows, job: string, rows: readonly number[]): void {
  const [rank, start, end, from, late] = ["rank", "start_ps", "end_ps", "from_rank", "late_ps"].map((name) => ranks.numbers(name));
  const [doing, cause, culprit, port] = ["activity", "cause", "culprit", "port"].map((name) => ranks.words(name));
  const traceEvents: object[] = [{ name: "process_name", ph: "M", pid: 0, tid: 0, args: { name: job } }];
  for (const row of rows) {
    const waits = doing.at(row) === "waiting" && !Number.isNaN(from[row]);
    const args = waits
      ? { from_rank: from[row], late_us: late[row] / 1e6, cause: cause.at(row), culprit: culprit.at(row), port: port.at(row) }
      : {};
    const ts = start[row] / 1e6;
    traceEvents.push({ name: doing.at(row), ph: "X", pid: 0, tid: rank[row], ts, dur: end[row] / 1e6 - ts, args });
  }
  save(`${job}.trace.json`, "application/json", JSON.stringify({ displayTimeUnit: "ns", traceEvents }));
}
