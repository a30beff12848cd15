"""`raddle sweep`: points, resumption, table, picture, refusals."""

import json
from pathlib import Path

import pytest

from raddle.report.page import charts_of
from raddle.services.overlay import parse_setting
from raddle.services.sweep import plan_points
from raddle.statistics.sweep_verdict import sweep_headline
from real import QUICK, interrupt, parquet_of, raddle, raddle_json


@pytest.fixture
def experiment(tmp_path: Path) -> Path:
    (tmp_path / "quick.toml").write_text(QUICK)
    return tmp_path / "quick.toml"


BUFFERS = "simulation.buffer=4MiB,32MiB"
UTILISATION = "schemes.hpcc.target_utilisation=0.9,0.95"


def test_a_sweep_leaves_a_folder_per_point_a_table_and_a_picture(experiment: Path) -> None:
    folder = experiment.parent
    words = ("sweep", experiment, "--set", BUFFERS, "--set", UTILISATION, "--out", "out")
    table = raddle_json(*words, folder=folder)
    assert table["schema"] == 1
    assert table["complete"] is True
    assert len(table["points"]) == 4
    assert table["keys"]["simulation.buffer"] == ["4MiB", "32MiB"]
    for point in table["points"]:
        summary = json.loads((folder / "out" / point["folder"] / "summary.json").read_text())
        hpcc = summary["schemes"]["hpcc"]
        assert point["schemes"]["hpcc"]["s"] == hpcc["score"]["s"]["1"]["mean"]
        assert point["schemes"]["hpcc"]["pause_us"] == hpcc["pause_us"]
        manifest = json.loads((folder / "out" / point["folder"] / "manifest.json").read_text())
        buffer = next(s for s in manifest["settings"] if s["key"] == "buffer")
        assert buffer["value"] == point["set"]["simulation.buffer"]
    assert json.loads((folder / "out" / "sweep.json").read_text()) == table
    page = (folder / "out" / "sweep.html").read_text()
    charts = charts_of(page)
    assert {c["key"] for c in charts} >= {"sweep-score", "sweep-fct", "sweep-pauses", "sweep-queue"}
    assert all(trace["y"] for c in charts for view in c["views"] for trace in view["data"])
    # Again: everything is there.
    assert "16 were there already" in raddle(*words, folder=folder).stderr


def test_a_point_is_the_same_as_a_run_with_that_setting(experiment: Path) -> None:
    folder = experiment.parent
    raddle("sweep", experiment, "--set", "simulation.buffer=4MiB", "--out", "out", folder=folder)
    (folder / "one.toml").write_text(QUICK + 'buffer = "4MiB"\n')
    raddle("run", "one.toml", "--out", "one", "--no-report", folder=folder)
    assert parquet_of(folder / "out" / "simulation.buffer=4MiB") == parquet_of(folder / "one")


def test_an_interrupted_sweep_resumes(experiment: Path) -> None:
    folder = experiment.parent
    words = ("sweep", experiment, "--set", BUFFERS, "--set", "simulation.seeds=[1],[2],[3],[4]",
             "--out", "out", "--jobs", "1", "--no-report")  # fmt: skip
    assert interrupt(*words, folder=folder, runs=folder / "out", after=2) == 130
    assert json.loads((folder / "out" / "sweep.json").read_text())["complete"] is False
    table = raddle_json(*words, folder=folder)
    assert table["complete"] is True
    assert len(table["points"]) == 8


def test_the_dry_run_of_a_sweep_adds_up_its_points(experiment: Path) -> None:
    words = ("sweep", experiment, "--set", BUFFERS, "--dry-run")
    told = raddle_json(*words, folder=experiment.parent)
    assert told["estimate"]["runs"] == 8
    assert told["estimate"]["packet_hops"] == sum(
        p["estimate"]["packet_hops"] for p in told["points"]
    )
    assert "simulation.buffer=4MiB" in raddle(*words, folder=experiment.parent).stdout
    assert not (experiment.parent / "out").exists()


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("simulation.buffer=4XiB", "`XiB` is not a unit"),
        ("simulation.bufer=4MiB", "did you mean `buffer`"),
        ("simulation.buffer", "expected KEY=VALUE"),
        ("simulation.buffer=4MiB,", "a value is missing"),
        ("simulation.buffer=4MiB,4MiB", "twice"),
        ("simulation..buffer=4MiB", "expected KEY=VALUE"),
        ("simulation.schemes=hpcc", "schemes"),
    ],
)
def test_a_wrong_setting_is_refused_with_its_cure(
    experiment: Path, setting: str, words: str
) -> None:
    done = raddle("sweep", experiment, "--set", setting, folder=experiment.parent, status=2)
    assert words in done.stderr
    assert done.stderr.startswith("error: --set simulation.")
    assert len(done.stderr.splitlines()) < 24
    assert not (experiment.parent / "out").exists()


def test_settings_that_contradict_each_other_are_refused(experiment: Path) -> None:
    folder = experiment.parent
    words = ("sweep", experiment, "--set", "score.weights={ long = 1, short = 0, allreduce = 0 }",
             "--set", "score.weights.long=1")  # fmt: skip
    assert "contradict" in raddle(*words, folder=folder, status=2).stderr


def test_too_many_points_are_refused(experiment: Path) -> None:
    values = ",".join(map(str, range(1001)))
    with pytest.raises(Exception, match="1,001 points are too many"):
        plan_points(experiment, [parse_setting(f"simulation.max_timeouts={values}")])


def test_folder_names_are_safe_and_distinct(experiment: Path) -> None:
    settings = [parse_setting("name=a/b,a:b")]
    names = [p.name for p in plan_points(experiment, settings)]
    assert len(set(names)) == 2
    assert not any(set("/:") & set(name) for name in names)


def test_the_headline_says_where_each_scheme_leads() -> None:
    def point(value: str, *leaders: str) -> dict[str, object]:
        return {
            "set": {"simulation.buffer": value}, "schemes": {"hpcc": {}, "dctcp": {}, "none": {}},
            "verdict": {"comparison": {"figure": "s", "unfinished": {"none": 1}}},
            "leaders": {"s": list(leaders)},
        }  # fmt: skip

    def headline(*points: dict[str, object]) -> str:
        return sweep_headline({"points": points})

    assert headline(point("4MiB", "hpcc"), point("8MiB", "hpcc")) == "HPCC leads at all 2 points."
    assert headline(point("4MiB", "hpcc"), point("8MiB", "dctcp")) == (
        "HPCC leads at 4MiB; DCTCP leads at 8MiB."
    )
    assert headline(point("4MiB", "hpcc", "dctcp"), point("8MiB")) == (
        "HPCC and DCTCP share the lead at 4MiB; no scheme is named best at 8MiB (unfinished flows)."
    )
    one = {**point("4MiB", "hpcc"), "schemes": {"hpcc": {}}}
    assert headline(one) == "All points have one scheme, HPCC: there is nothing to compare."
    assert headline({**one, "schemes": {}}).startswith("No point has finished yet")


def test_a_point_whose_flows_do_not_end_names_no_scheme(experiment: Path) -> None:
    folder = experiment.parent
    done = raddle(
        "sweep", experiment, "--set", "simulation.end=500us,1s", "--out", "out", folder=folder
    )
    assert "No scheme is named best at 500us (unfinished flows)" in done.stdout
    table = json.loads((folder / "out" / "sweep.json").read_text())
    assert [bool(p["leaders"]["s"] or p["leaders"]["slowdown_p99"]) for p in table["points"]] == [
        False, True,
    ]  # fmt: skip
    page = (folder / "out" / "sweep.html").read_text()
    assert "No scheme is named best at 500us" in page
