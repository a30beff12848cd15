/** The page: what is chosen above, the view in the middle, details beside it. */

import { useEffect, useMemo, useState } from "preact/hooks";

import type { Folder, Run } from "./data/folder";
import { measured, MEASURE_NAMES } from "./data/measures";
import { Pauses } from "./data/pauses";
import { lasted } from "./data/queries";
import type { Rows } from "./data/table";
import { span } from "./data/units";
import { Choice, Head } from "./head";
import { type Go, MEASURES, type Measure, type Place, RUN_VIEWS, usePlace } from "./place";
import { CompareView } from "./views/compare";
import { Details, type Tables } from "./views/details";
import { FabricView } from "./views/fabric";
import { FlowsView } from "./views/flows";
import { JobsView } from "./views/jobs";
import { PortsView } from "./views/ports";
import { Series } from "./views/series";

const VIEW_NAMES: Record<(typeof RUN_VIEWS)[number], string> = { fabric: "Fabric", flows: "Flows", ports: "Ports", jobs: "Jobs", compare: "Compare" };

/** What a view and the details read; the rest of a folder stays on its disk. */
const TABLES = ["flows", "ports", "pauses", "paths", "delays", "blame", "ranks", "jobs", "queues"] as const;
type Loaded = Record<(typeof TABLES)[number], Rows | null>;

export function App({ folders }: { folders: readonly Folder[] }) {
  const [place, go, replace] = usePlace();
  const [folder, other] = folders;
  const run = runOf(folder, place);
  const [loaded, fault] = useLoaded(folder, run);
  const views = RUN_VIEWS.filter((view) => view !== "jobs" || folder.has("jobs")).map((view) => [view, VIEW_NAMES[view]] as const);
  const title = (
    <>
      <b>{folder.name}</b>
      {other !== undefined && <> beside <b>{other.name}</b></>}
    </>
  );
  useEffect(() => {
    if (loaded === null) return;
    performance.mark("shown");
    document.documentElement.dataset.ready = "yes";
  }, [loaded]);
  return (
    <>
      <Head title={title} fabric={folder.fabric} views={views} view={place.view} go={go}>
        <Choice name="Scheme" id="scheme" value={run.scheme} all={folder.schemes} choose={(scheme) => go({ scheme, seed: NaN })} />
        <Choice name="Seed" id="seed" value={run.seed} all={folder.seeds(run.scheme)} choose={(seed) => go({ seed: Number(seed) })} />
      </Head>
      {fault !== "" && <p class="fault" role="alert">{fault}</p>}
      {loaded === null ? fault === "" && <p>Reading…</p> : <Body folders={folders} run={run} loaded={loaded} place={place} go={go} replace={replace} />}
    </>
  );
}

/** The tables of a run, once they are read, or why they cannot be. */
function useLoaded(folder: Folder, run: Run): [Loaded | null, string] {
  const [loaded, setLoaded] = useState<Loaded | null>(null);
  const [fault, setFault] = useState("");
  useEffect(() => {
    let current = true;
    Promise.all(TABLES.map((table) => folder.rows(table, run))).then(
      (rows) => current && setLoaded(Object.fromEntries(TABLES.map((table, i) => [table, rows[i]])) as Loaded),
      (error: unknown) => current && setFault(String(error)),
    );
    return () => {
      current = false;
    };
  }, [folder, run.scheme, run.seed]);
  return [loaded, fault];
}

/** The chosen run, or the first. */
function runOf(folder: Folder, place: Place): Run {
  const scheme = folder.schemes.includes(place.scheme) ? place.scheme : (folder.schemes[0] ?? "");
  const seeds = folder.seeds(scheme);
  return { scheme, seed: seeds.includes(place.seed) ? place.seed : (seeds[0] ?? NaN) };
}

interface BodyProps {
  readonly folders: readonly Folder[];
  readonly run: Run;
  readonly loaded: Loaded;
  readonly place: Place;
  readonly go: Go;
  readonly replace: Go;
}

function Body({ folders, run, loaded, place, go, replace }: BodyProps) {
  const [folder, other] = folders;
  const { flows, ports } = loaded;
  if (flows === null || ports === null) return <p class="fault" role="alert">{folder.name} has no flows or no ports: it holds no results of raddle run.</p>;
  const { fabric } = folder;
  const duration = useMemo(() => lasted(flows), [flows]);
  const chosen: [number, number] | null = place.from === null || place.to === null ? null : [place.from, place.to];
  const tables: Tables = { ...loaded, flows, ports };
  const pauses = useMemo(
    () => (loaded.pauses === null ? null : new Pauses(loaded.pauses, fabric, place.from ?? 0, place.to ?? Infinity)),
    [loaded.pauses, fabric, place.from, place.to],
  );
  const values = useMemo(() => measured(place.measure, ports, pauses, duration, fabric), [place.measure, ports, pauses, duration, fabric]);
  return (
    <>
      {folder.source.leftOut.map((words) => <p class="hint" key={words}>{words}</p>)}
      {place.view !== "compare" && loaded.queues !== null && <TimeLine queues={loaded.queues} place={place} go={go} />}
      <main class={place.about && !place.about.startsWith("job:") ? "split" : ""}>
        <section id="view">
          {place.view === "fabric" && (
            <>
              <p class="controls" role="group" aria-label="Coloured by">
                {MEASURES.map((measure: Measure) => (
                  <button key={measure} aria-pressed={place.measure === measure} onClick={() => go({ measure })}>{MEASURE_NAMES[measure]}</button>
                ))}
                {chosen !== null && place.measure !== "pause" && <output>of the whole run: ports are counted once</output>}
              </p>
              <FabricView fabric={fabric} measured={values} title={MEASURE_NAMES[place.measure]} place={place} go={go} />
            </>
          )}
          {place.view === "flows" && <FlowsView fabric={fabric} flows={flows} paths={loaded.paths} place={place} go={go} replace={replace} span={chosen} />}
          {place.view === "ports" && <PortsView fabric={fabric} ports={ports} duration={duration} place={place} go={go} replace={replace} />}
          {place.view === "jobs" && loaded.jobs !== null && <JobsView jobs={loaded.jobs} blame={loaded.blame} ranks={loaded.ranks} place={place} go={go} />}
          {place.view === "compare" && <CompareView left={folder} right={other ?? folder} run={run} go={go} />}
        </section>
        <div class="aside">
          <Details id="details" title={other && folder.name} folder={folder} run={run} tables={tables} duration={duration} place={place} go={go} />
          {other !== undefined && <Beside folder={other} place={place} go={go} />}
        </div>
      </main>
    </>
  );
}

/** The same thing in the other run. */
function Beside({ folder, place, go }: { folder: Folder; place: Place; go: Go }) {
  const run = runOf(folder, place);
  const [loaded] = useLoaded(folder, run);
  const duration = useMemo(() => (loaded?.flows ? lasted(loaded.flows) : 1), [loaded]);
  if (loaded === null || loaded.flows === null || loaded.ports === null) return null;
  const tables: Tables = { ...loaded, flows: loaded.flows, ports: loaded.ports };
  return <Details id="beside" title={folder.name} folder={folder} run={run} tables={tables} duration={duration} place={place} go={go} />;
}

/** Bytes in switches and paused ports over time; dragging over it chooses a span. */
function TimeLine({ queues, place, go }: { queues: Rows; place: Place; go: Go }) {
  const [x, series] = useMemo(() => {
    const [time, held, paused] = ["time_ps", "buffered_bytes", "paused_ports"].map((name) => queues.numbers(name));
    return [
      Array.from(time, (value) => value / 1e6),
      [
        { name: "in switches, KiB", values: Array.from(held, (value) => value / 1024), colour: "--flow-1" },
        { name: "paused ports", values: Array.from(paused), colour: "--flow-4" },
      ],
    ] as const;
  }, [queues]);
  if (x.length < 2) return null;
  return (
    <section id="time">
      <Series x={x} series={series} height={120} onSpan={(from, to) => go({ from: Math.round(from * 1e6), to: Math.round(to * 1e6) })} />
      <p class="hint">
        {place.from === null || place.to === null ? (
          "Drag over the lines to look at a part of the run."
        ) : (
          <>
            {span(place.from)} to {span(place.to)} <button onClick={() => go({ from: null, to: null })}>Whole run</button>
          </>
        )}
      </p>
    </section>
  );
}
