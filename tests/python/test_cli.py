"""The command line as a user meets it: exit codes, stdout against stderr, JSON."""

import json
import os
import re
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import tomli_w
import typer.main
from typer.testing import CliRunner, Result

from raddle.cli.app import PANELS, app
from raddle.report.plots import draw_traffic
from raddle.services.template import EXPERIMENT
from synthetic import SyntheticCore


def invoke(*words: object) -> Result:
    return CliRunner().invoke(app, [str(w) for w in words], prog_name="raddle")


def test_run_prints_a_table_and_talks_on_stderr(
    core: SyntheticCore, experiment: Path, tmp_path: Path
) -> None:
    result = invoke("run", experiment, "--out", tmp_path / "out")
    assert result.exit_code == 0, result.output
    assert "HPCC serves this fabric best" in result.stdout
    assert "report.html" in result.stderr
    assert "report.html" not in result.stdout
    assert (tmp_path / "out" / "report.html").is_file()


def test_run_with_json_prints_the_summary_and_nothing_else(
    core: SyntheticCore, experiment: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    result = invoke("run", experiment, "--out", out, "--json", "--no-report", "-q")
    assert json.loads(result.stdout) == json.loads((out / "summary.json").read_text())
    assert result.stderr == ""
    assert not (out / "report.html").exists()


def test_results_of_another_experiment_stay_unless_replace_is_given(
    core: SyntheticCore, experiment: Path, tmp_path: Path
) -> None:
    words = ("run", experiment, "--out", tmp_path / "out", "--no-report")
    assert invoke(*words).exit_code == 0
    experiment.write_text(experiment.read_text() + '[fabric]\nkind = "dumbbell"\n')
    refused = invoke(*words)
    assert refused.exit_code == 2
    assert "fabric.kind  absent there, dumbbell here" in refused.stderr
    assert "--replace" in refused.stderr
    assert invoke(*words, "--replace").exit_code == 0
    assert invoke(*words).exit_code == 0


def test_points_of_another_sweep_stay_unless_replace_is_given(
    core: SyntheticCore, experiment: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = experiment.read_text()
    plain_core = core.validate

    def without_include(text: str, path: str, set_up: object) -> str:
        raw = tomllib.loads(text)
        base = tomllib.loads(experiment.read_text())
        merged = tomli_w.dumps({**base, "name": raw.get("name", base["name"])})
        return plain_core(merged, path)

    monkeypatch.setattr(core, "validate", without_include)
    words = ("sweep", experiment, "--set", "name=a,b", "--out", tmp_path / "out", "--no-report")
    assert invoke(*words).exit_code == 0
    experiment.write_text(text + '[fabric]\nkind = "dumbbell"\n')
    refused = invoke(*words)
    assert refused.exit_code == 2
    assert "name=a holds results of another experiment" in refused.stderr
    assert invoke(*words, "--replace").exit_code == 0


def test_dry_run_estimates_and_writes_nothing(
    core: SyntheticCore, experiment: Path, tmp_path: Path
) -> None:
    result = invoke("run", experiment, "--out", tmp_path / "out", "--dry-run", "--jobs", 2)
    assert "8 runs" in result.stdout
    # Eight runs of 6.6 s, of a machine that is measured to be half as fast; Python comes on top.
    assert re.search(r"about 5[3-6] s with 2 runs at a time", result.stdout)
    assert not (tmp_path / "out").exists()
    plan = json.loads(invoke("run", experiment, "--dry-run", "--json", "-j", 4).stdout)
    assert plan["schema"] == 1
    assert plan["runs"][0]["estimate"]["seconds"] == pytest.approx(2 * 6.6)
    assert 0 < plan["estimate"]["wall_s"] - 8 * 2 * 6.6 / 4 < 3


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("run", "no-such.toml"), 2, "no such file"),
        (("run", "x.toml", "--jobs", "0"), 2, "jobs"),
        (("run", "x.toml", "--threads", "0"), 2, "threads"),
        (("sweep", "x.toml", "--set", "a=1", "--threads", "1025"), 2, "at most 1024"),
        (("run", "x.toml", "--unknown"), 2, "No such option"),
        (("report", "no-such-folder"), 2, "no results folder"),
        (("compare", "nowhere", "nowhere"), 2, "no results folder"),
        (("fabric", "check", "no-such-map"), 2, "no such file"),
        (("fabric", "show", "x.toml", "--out", "x.gif"), 2, ".svg, .png or .pdf"),
        (("traffic", "write", "x.toml", "--out", "flows.xlsx"), 2, "--to"),
    ],
)
def test_bad_usage_is_exit_2_with_words(
    core: SyntheticCore, words: tuple[str, ...], code: int, message: str
) -> None:
    result = invoke(*words)
    assert result.exit_code == code
    assert message in result.stderr
    assert result.stdout == ""
    assert len(result.stderr.splitlines()) < 25


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ("lab", "mpirun", "--offload", "xpd", "--", "true"),
            "'--offload': `xpd`: did you mean `xdp`? possible: off, sockets, xdp",
        ),
        (("schema", "rout"), "'of': `rout`: did you mean `route`? possible: experiment, route"),
        (("fabric", "export", "m", "--format", "x'y"), "`x'y`: possible: ibsim, toml, hpcc-ns3"),
        (("run", "x.toml", "--jobs", "many"), "`many`: "),
        (("replay", "x.trace.parquet", "--threads", "all"), "'--threads': `all`: "),
    ],
)
def test_bad_usage_names_the_value_what_is_possible_and_what_is_nearest(
    words: tuple[str, ...], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    result = invoke(*words)
    assert result.exit_code == 2
    assert message in result.stderr
    assert "Value error" not in result.stderr


def test_an_error_with_json_is_json_too(core: SyntheticCore) -> None:
    result = invoke("run", "no-such.toml", "--json")
    assert json.loads(result.stdout)["error"]["exit_code"] == 2


def test_a_bug_of_ours_is_exit_70_and_asks_for_a_report(
    core: SyntheticCore, experiment: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(core, "validate", lambda text, path, set_up: 1 / 0)
    result = invoke("run", experiment)
    assert result.exit_code == 70
    assert "this is a bug in raddle" in result.stderr


def test_threads_may_be_given_by_a_variable_and_the_option_wins(
    core: SyntheticCore, experiment: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RADDLE_THREADS", "1025")
    assert "at most 1024" in invoke("run", experiment).stderr
    monkeypatch.setenv("RADDLE_THREADS", "3")
    for name, words, threads in (("a", (), 3), ("b", ("--threads", 5), 5)):
        words = ("run", experiment, "--out", tmp_path / name, "--no-report", *words)
        assert invoke(*words).exit_code == 0
        runs = json.loads((tmp_path / name / "manifest.json").read_text())["runs"]
        assert {run["threads"] for run in runs} == {threads}


def test_an_interrupt_is_exit_130(
    core: SyntheticCore, experiment: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import raddle.services.run

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(raddle.services.run, "execute", interrupted)
    assert invoke("run", experiment, "--out", tmp_path / "out").exit_code == 130


def test_the_experiment_of_init_is_toml_that_validates_and_runs(
    core: SyntheticCore, tmp_path: Path
) -> None:
    file = tmp_path / "new.toml"
    assert invoke("init", file).exit_code == 0
    assert tomllib.loads(file.read_text())["schema"] == 1
    assert invoke("init").stdout == EXPERIMENT
    again = invoke("init", file)
    assert again.exit_code == 2
    assert "exists already" in again.stderr
    result = invoke("run", file, "--out", tmp_path / "out", "--no-report")
    assert result.exit_code == 0, result.output


def test_compare_finds_no_difference_between_a_folder_and_itself(one_seed: Path) -> None:
    result = invoke("compare", one_seed, one_seed, "--tolerance", 0, "--json")
    assert result.exit_code == 0
    rows = json.loads(result.stdout)
    assert rows["agree"] is True
    assert len(rows["figures"]) > 50


def test_compare_answers_no_beyond_the_tolerance(one_seed: Path, three_seeds: Path) -> None:
    result = invoke("compare", one_seed, three_seeds, "--tolerance", 1)
    assert result.exit_code == 1
    assert "differ by more than 1 %" in result.stderr


def test_report_prints_the_path_of_the_page(one_seed: Path) -> None:
    result = invoke("report", one_seed, "--json")
    assert Path(json.loads(result.stdout)["report"]).is_file()


def test_fabric_commands_build_check_and_draw(core: SyntheticCore, tmp_path: Path) -> None:
    spec = tmp_path / "map.toml"
    spec.write_text('kind = "dumbbell"\n')
    assert invoke("fabric", "build", spec, "--format", "hpcc-ns3").stdout.startswith("# hpcc-ns3")
    assert invoke("fabric", "check", spec).stdout.endswith("sound\n")
    picture = tmp_path / "map.svg"
    assert "32 hosts" in invoke("fabric", "show", spec, "--out", picture).stdout
    assert picture.read_text().startswith("<?xml")
    broken = tmp_path / "broken.toml"
    broken.write_text("")
    result = invoke("fabric", "check", broken, "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["sound"] is False


def test_traffic_commands_write_describe_and_plot(
    core: SyntheticCore, experiment: Path, tmp_path: Path
) -> None:
    flows = tmp_path / "flows.parquet"
    written = json.loads(invoke("traffic", "write", experiment, "-o", flows, "--json").stdout)
    assert written == {"schema": 1, "file": str(flows), "format": "parquet", "flows": 600}
    assert "T_long" in invoke("traffic", "describe", experiment).stdout
    for ending in ("svg", "png", "pdf"):
        picture = tmp_path / f"figure-7.{ending}"
        result = invoke("traffic", "plot", experiment, experiment, "--out", picture)
        assert result.exit_code == 0, result.output
        assert picture.stat().st_size > 5000


def test_axes_of_hosts_have_ticks_at_hosts_only_and_classes_hide_nobody() -> None:
    flows = pa.table(
        {"src": [0, 0, 0, 1], "dst": [1, 1, 1, 0], "class": ["T_long", "T_short", "B_a", "B_a"]}
    )
    axis = draw_traffic([("x", flows)], seed=1).axes[0]
    for ticks, limits in (
        (axis.get_xticks(), axis.get_xlim()),
        (axis.get_yticks(), axis.get_ylim()),
    ):
        assert limits == (-0.5, 1.5)
        assert [tick for tick in ticks if -0.5 <= tick <= 1.5] == [0, 1]
    marks = [
        tuple(point)
        for group in axis.collections
        for point in np.asarray(group.get_offsets()).tolist()
    ]
    assert len(marks) == len(set(marks)) == 4
    assert {(round(x), round(y)) for x, y in marks} == {(0, 1), (1, 0)}


def test_doctor_names_a_cure_for_what_is_missing(core: SyntheticCore) -> None:
    result = invoke("doctor", "--json")
    found = json.loads(result.stdout)
    assert found["healthy"] is True
    assert all(c["works"] or c["cure"] for c in found["checks"])


def test_an_unknown_variable_is_named(core: SyntheticCore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RADDLE_JOBBS", "3")
    assert "RADDLE_JOBBS is not known" in invoke("init").stderr
    # What the library under an MPI program would say itself, or nobody if it is not there.
    result = invoke("lab", "mpirun", "--name", "none", "--", "true")
    assert "no lab `none`" in result.stderr
    assert "RADDLE_JOBBS" not in result.stderr


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("run",),
        ("report",),
        ("compare",),
        ("init",),
        ("doctor",),
        ("schema",),
        ("fabric", "build"),
        ("fabric", "check"),
        ("fabric", "show"),
        ("traffic", "write"),
        ("traffic", "describe"),
        ("traffic", "plot"),
        ("config",),
        ("lab",),
        *(("lab", c) for c in ("up", "down", "exec", "mpirun", "status", "list", "switch")),
    ],
)
def test_every_command_has_help_with_examples(words: tuple[str, ...]) -> None:
    result = invoke(*words, "--help")
    assert result.exit_code == 0
    assert "Examples" in result.stdout


def start(*words: str) -> tuple[float, subprocess.CompletedProcess[str]]:
    code = "import sys; sys.argv[0] = 'raddle'; from raddle.cli import main; main()"
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", code, *words],
        capture_output=True,
        text=True,
        check=False,
        env={k: v for k, v in os.environ.items() if not k.startswith("RADDLE_")},
    )
    return time.perf_counter() - began, done


@pytest.mark.parametrize("words", [("--help",), ("run", "no-such.toml", "--no-report")])
def test_the_command_starts_without_the_heavy_packages(words: tuple[str, ...]) -> None:
    # The time itself is below 0.4 s on a quiet machine; what makes it so is what is not imported.
    seconds, done = start(*words)
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    for heavy in ("numpy", "pyarrow", "plotly", "matplotlib", "jinja2", "pandas"):
        assert heavy not in imported
    assert seconds < 4


def test_a_closed_pipe_is_no_error(experiment: Path, tmp_path: Path) -> None:
    code = "import sys; sys.argv[0] = 'raddle'; from raddle.cli import main; main()"
    done = subprocess.run(
        ["bash", "-c", f'"{sys.executable}" -c "{code}" init | true; echo ${{PIPESTATUS[0]}}'],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "0"
    assert done.stderr == ""


def test_the_help_has_every_command_in_a_group() -> None:
    commands = set(typer.main.get_command(app).commands)  # type: ignore[attr-defined]
    grouped = [name for names in PANELS.values() for name in names]
    assert sorted(grouped) == sorted(commands)
