"""`raddle run` with the compiled core: results, score, interruption, estimates, start-up."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import raddle as package
from raddle.results import TABLES
from raddle.services.run import execute, plan_text
from real import ENVIRONMENT, QUICK, interrupt, parquet_of, raddle, raddle_json

LONGER = QUICK.replace(
    'schemes = ["none", "hpcc"]', 'schemes = ["none", "dctcp", "hpcc"]\nseeds = [1, 2, 3, 4, 5, 6]'
).replace("hosts_per_leaf = 8", "hosts_per_leaf = 20")


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results of the quick experiment, with its report."""
    folder = tmp_path_factory.mktemp("quick")
    (folder / "quick.toml").write_text(QUICK)
    raddle("run", "quick.toml", "--out", "out", folder=folder)
    return folder / "out"


def test_the_experiment_of_init_runs_as_it_is(tmp_path: Path) -> None:
    raddle("init", "my.toml", folder=tmp_path)
    raddle("init", "my.toml", folder=tmp_path, status=2)
    text = (tmp_path / "my.toml").read_text()
    (tmp_path / "my.toml").write_text(text.replace("hosts_per_leaf = 8", "hosts_per_leaf = 4"))
    done = raddle("run", "my.toml", "--out", "out", folder=tmp_path)
    assert re.search(r"(serves this fabric best|share the lead|tie): S = \d", done.stdout)
    assert (tmp_path / "out" / "report.html").stat().st_size < 15e6
    # As it is, without the patience for all of it.
    assert len(plan_text(text, tmp_path / "my.toml").runs) == 12


def test_tables_have_the_documented_columns(quick: Path) -> None:
    for results in (package.load(quick), package.load(quick / "isolated")):
        for name, schema in TABLES.items():
            table = getattr(results, name)
            assert table.column_names[: len(schema.names)] == schema.names, name
            for field in schema:
                assert table.schema.field(field.name).type == field.type, (name, field.name)
    assert package.load(quick).flows.num_rows > package.load(quick / "isolated").flows.num_rows


def test_the_summary_holds_every_figure(quick: Path) -> None:
    summary = json.loads((quick / "summary.json").read_text())
    assert summary["schema"] == 1
    assert summary["complete"] is True
    for scheme in ("none", "hpcc"):
        row = summary["schemes"][scheme]
        assert row["flows"] == row["finished"] > 0
        assert row["packet_hops"] > 0
        assert set(row["fct_us"]) >= {"tested-long", "tested-short", "tested-allreduce"}
        for spread in row["fct_us"].values():
            assert 0 < spread["p50"] <= spread["p95"] <= spread["p99"] <= spread["p99_9"]
        assert row["slowdown"]["p50"] >= 1
        assert row["score"]["primary"] == "1"
        assert set(row["score"]["s"]) == {"1", "2", "3"}
        assert row["score"]["parts"]["long"]["unpaired"] == 0
        assert row["impact"]["tested-short"]["mean"] > 0.9
        assert 0 < row["jain_long_flows"] <= 1
    assert summary["schemes"]["hpcc"]["parameters"]["target_utilisation"]["value"] == "0.95"


CUT = """\
schema = 1
[fabric]
kind = "leaf-spine"
leaves = 2
spines = 2
hosts_per_leaf = 4
[traffic]
generator = "permutation"
size = "1MB"
[simulation]
schemes = ["none", "hpcc"]
"""
DOWN = '[[simulation.faults]]\nlink = [0, 8]\ndown = "0us"\n'


@pytest.mark.parametrize(
    ("text", "unfinished", "words"),
    [
        (CUT + 'end = "20us"\n', 8, "only 0 finished under both schemes, so none is named best"),
        (CUT + DOWN, 2, "Over the 6 flows that finished under both schemes, PFC only serves"),
        (QUICK + 'end = "500us"\n', 7, "had not started when the runs ended"),
    ],
)
def test_unfinished_flows_come_first_in_the_verdict(
    tmp_path: Path, text: str, unfinished: int, words: str
) -> None:
    (tmp_path / "a.toml").write_text(text)
    done = raddle("run", "a.toml", "--out", "out", folder=tmp_path)
    said = done.stdout.splitlines()
    assert said[-2].startswith(f"Unfinished flows: {unfinished} under each of the two schemes.")
    assert words in said[-2]
    # Of the HPC mix only tested flows are judged, and those that had started ended.
    assert said[-1].startswith("Compared: 4 tested flows" if unfinished == 7 else "Compared: of ")
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    verdict = summary["verdict"]
    assert (verdict["headline"], verdict["compared"]) == (said[-2], said[-1])
    assert (verdict["best"] is None) == ("Over the 6" not in words)
    page = (tmp_path / "out" / "report.html").read_text()
    assert page.index("Unfinished flows: ") < page.index("Compared: ")


def test_a_run_without_flows_says_so(tmp_path: Path) -> None:
    (tmp_path / "none.csv").write_text("start_us,src,dst,size_bytes\n")
    head, _, rest = CUT.partition("[traffic]")
    simulation = rest.partition("[simulation]")[2]
    text = f'{head}[traffic]\nfile = "none.csv"\n[simulation]{simulation}'
    (tmp_path / "a.toml").write_text(text)
    done = raddle("run", "a.toml", "--out", "out", folder=tmp_path)
    assert "These runs have no flows" in done.stdout
    assert re.search(r"hpcc +0/0 ", done.stdout)
    assert "These runs have no flows" in (tmp_path / "out" / "report.html").read_text()


def test_the_score_table_decides_and_needs_no_new_simulation(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(QUICK)
    first = raddle_json("run", "a.toml", "--out", "out", folder=tmp_path)
    weights = "weights = { long = 0.8, short = 0.1, allreduce = 0.1 }"
    rules = f'[score]\n{weights}\nreading = "ratio-of-means"\nvariance = "none"\n'
    (tmp_path / "a.toml").write_text(QUICK + rules)
    before = (tmp_path / "out" / ".runs" / "hpcc-seed1-loaded" / "stats.json").stat().st_mtime_ns
    done = raddle("run", "a.toml", "--out", "out", "--no-report", folder=tmp_path)
    after = (tmp_path / "out" / ".runs" / "hpcc-seed1-loaded" / "stats.json").stat().st_mtime_ns
    assert before == after
    assert "at your weights (L 0.8 · S 0.1 · A 0.1)" in done.stdout
    assert not (tmp_path / "out" / "report.html").exists()  # it showed the other score
    score = json.loads((tmp_path / "out" / "summary.json").read_text())["schemes"]["hpcc"]["score"]
    assert (score["primary"], score["reading"], score["variance_mode"]) == (
        "own", "ratio-of-means", "none",
    )  # fmt: skip
    ratios = {role: part["ratio"]["mean"] for role, part in score["parts"].items()}
    weighted = 0.8 * ratios["long"] + 0.1 * ratios["short"] + 0.1 * ratios["allreduce"]
    assert score["s"]["own"]["mean"] == pytest.approx(weighted)
    assert score["w"]["mean"] == 0
    assert first["schemes"]["hpcc"]["score"]["w"]["mean"] >= 0
    raddle("report", "out", folder=tmp_path)
    page = (tmp_path / "out" / "report.html").read_text()
    assert "<small>yours</small>" in page
    assert "a ratio of means" in page


def test_an_interrupted_run_resumes_to_the_same_bytes(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(LONGER)
    words = ("run", "a.toml", "--no-report", "--jobs", "1")
    status = interrupt(
        *words, "--out", "cut", folder=tmp_path, runs=tmp_path / "cut" / ".runs", after=2
    )
    assert status == 130
    manifest = json.loads((tmp_path / "cut" / "manifest.json").read_text())
    assert manifest["complete"] is False
    done = sum(run["done"] for run in manifest["runs"])
    assert 2 <= done < len(manifest["runs"])
    assert not list((tmp_path / "cut").rglob("*.tmp"))
    assert raddle_json(*words, "--out", "cut", folder=tmp_path)["complete"] is True
    raddle("run", "a.toml", "--no-report", "--jobs", "2", "--out", "whole", folder=tmp_path)
    assert parquet_of(tmp_path / "cut") == parquet_of(tmp_path / "whole")


def test_the_dry_run_tells_the_work_beforehand(tmp_path: Path, quick: Path) -> None:
    (tmp_path / "quick.toml").write_text(QUICK)
    plan = raddle_json("run", "quick.toml", "--dry-run", folder=tmp_path)
    assert not (tmp_path / "out").exists()
    assert "TiB" not in raddle("run", "quick.toml", "--dry-run", folder=tmp_path).stdout
    for run in plan["runs"]:
        stats = json.loads((quick / ".runs" / run["name"] / "stats.json").read_text())
        told, done = run["estimate"]["packet_hops"], stats["packet_hops"]
        assert done / 2 < told < done * 2, run["name"]
    measure = (
        "import re, sys; from raddle.cli.app import app\n"
        "try: app(sys.argv[1:])\n"
        "except SystemExit: pass\n"
        # Not getrusage: its peak starts from that of the process that forked this one.
        "status = open('/proc/self/status').read()\n"
        "print(int(re.search(r'VmHWM:\\s+(\\d+)', status)[1]) * 1024)"
    )
    words = ("run", "quick.toml", "--out", "out", "--no-report", "--quiet")
    used = subprocess.run(
        [sys.executable, "-c", measure, *words],
        cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    told, used_bytes = plan["estimate"]["memory_bytes"], int(used.stdout.split()[-1])
    assert used_bytes / 2 < told < used_bytes * 2


def test_a_run_without_report_loads_nothing_heavy(tmp_path: Path) -> None:
    (tmp_path / "quick.toml").write_text(QUICK)
    script = (
        "import sys; from raddle.cli.app import app\n"
        "try: app(sys.argv[1:])\n"
        "except SystemExit: pass\n"
        "print(sorted({m.partition('.')[0] for m in sys.modules}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, "run", "quick.toml", "--out", "out", "--no-report"],
        cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    loaded = set(json.loads(done.stdout.splitlines()[-1].replace("'", '"')))
    assert not loaded & {"pandas", "polars", "scipy", "plotly", "matplotlib", "jinja2"}


def test_python_gives_frames_and_the_same_results_as_the_command(
    quick: Path, tmp_path: Path
) -> None:
    results = package.run(
        {
            "schema": 1,
            "name": "quick",
            "fabric": {"kind": "leaf-spine", "leaves": 2, "spines": 2, "hosts_per_leaf": 8},
            "traffic": {"generator": "hpc-mix"},
            "simulation": {"schemes": ["none", "hpcc"]},
        },
        tmp_path / "out",
    )
    frame = results.flows.to_pandas()
    assert set(frame["scheme"]) == {"none", "hpcc"}
    assert parquet_of(tmp_path / "out") == parquet_of(quick)


def test_recorded_acknowledgements_can_be_read(tmp_path: Path) -> None:
    text = QUICK.replace('["none", "hpcc"]', '["hpcc"]\nisolated = false')
    plan = plan_text(text + "[record]\nacks = true\n", tmp_path / "a.toml")
    execute(plan, tmp_path / "out")
    acks = package.load(tmp_path / "out").acks
    assert acks is not None
    assert acks.column_names == [
        "scheme", "seed", "time_ps", "src", "dst", "sport", "kind", "seq", "ecn", "snd_nxt",
        "rate_bps", "ref", "x",
    ]  # fmt: skip
    assert acks.num_rows > 1000


def test_the_stub_of_the_core_is_true(tmp_path: Path) -> None:
    # Beside an empty package, so that mypy does not read all of raddle and what it imports.
    (tmp_path / "raddle").mkdir()
    (tmp_path / "raddle" / "__init__.pyi").touch()
    stub = Path(package.__file__).with_name("_core.pyi")
    shutil.copy(stub, tmp_path / "raddle")
    done = subprocess.run(
        [sys.executable, "-m", "mypy.stubtest", "raddle._core"],
        env={**ENVIRONMENT, "MYPYPATH": str(tmp_path)},
        capture_output=True, text=True, check=False, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


RAILS = """\
schema = 1
[fabric]
kind = "dumbbell"
hosts_per_side = 2
[rails]
rates = ["100Gbps", "100Gbps"]
lateness = "2us"
[traffic]
generator = "permutation"
size = "4MiB"
"""


def test_messages_travel_over_rails(tmp_path: Path) -> None:
    alone = RAILS.replace('"100Gbps", "100Gbps"', '"100Gbps"')
    slowest = {}
    for name, text in (("two", RAILS), ("one", alone)):
        (tmp_path / f"{name}.toml").write_text(text)
        summary = raddle_json("run", f"{name}.toml", "--out", name, folder=tmp_path)
        row = summary["schemes"]["swift"]
        assert row["flows"] == row["finished"] > 0
        times = package.load(tmp_path / name).flows["fct_ps"].to_numpy()
        slowest[name] = float(times.max())
    assert 0.45 < slowest["two"] / slowest["one"] < 0.6
    refused = RAILS + '[simulation]\nschemes = ["hpcc"]\n'
    (tmp_path / "hpcc.toml").write_text(refused)
    done = raddle("run", "hpcc.toml", "--out", "hpcc", folder=tmp_path, status=2)
    assert "hpcc needs telemetry of every hop" in done.stderr
