"""The other commands with the compiled core: maps, traffic, doctor, completion, refusals."""

import json
import subprocess
import sys
import venv
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from real import QUICK, raddle, raddle_json

EXPERIMENT_200 = """\
schema = 1
[fabric]
kind = "leaf-spine"
leaves = 10
spines = 5
hosts_per_leaf = 20
[traffic]
generator = "hpc-mix"
"""


@pytest.fixture
def experiment(tmp_path: Path) -> Path:
    (tmp_path / "quick.toml").write_text(QUICK)
    return tmp_path / "quick.toml"


@pytest.mark.parametrize("form", ["toml", "hpcc-ns3"])
def test_a_map_is_the_same_after_it_was_written(experiment: Path, form: str) -> None:
    folder = experiment.parent
    raddle("fabric", "build", experiment, "--format", form, "--out", "map", folder=folder)
    first = raddle_json("fabric", "check", experiment, folder=folder)
    second = raddle_json("fabric", "check", "map", folder=folder)
    assert first["sound"] is second["sound"] is True
    for key in ("hosts", "switches", "links", "levels", "link_kinds"):
        assert first[key] == second[key]
    printed = raddle("fabric", "build", experiment, "--format", form, folder=folder).stdout
    assert printed == (folder / "map").read_text()


def test_a_map_is_described_and_drawn(experiment: Path) -> None:
    done = raddle("fabric", "show", experiment, "--out", "map.svg", folder=experiment.parent)
    assert "16 hosts, 4 switches, 20 links" in done.stdout
    assert "<svg" in (experiment.parent / "map.svg").read_text()


def test_figure_7_is_one_command(tmp_path: Path) -> None:
    (tmp_path / "mix.toml").write_text(EXPERIMENT_200)
    words = ("traffic", "plot", "mix.toml", "--set", "traffic.load_factor=0.3,0.6,0.9",
             "--out", "figure-7.svg")  # fmt: skip
    flows = raddle_json(*words, folder=tmp_path)["flows"]
    assert flows[0] < flows[1] < flows[2]
    picture = (tmp_path / "figure-7.svg").read_text()
    assert "load_factor 0.9" in picture
    assert "tested-long" in picture


@pytest.mark.parametrize("name", ["flows.csv", "flows.parquet", "flows.txt"])
def test_flows_can_be_written_and_described(experiment: Path, name: str) -> None:
    folder = experiment.parent
    count = raddle_json("traffic", "write", experiment, "--out", name, folder=folder)["flows"]
    told = raddle_json("traffic", "describe", name, folder=folder)
    assert (
        told["flows"]
        == count
        == raddle_json("traffic", "describe", experiment, folder=folder)["flows"]
    )
    alone = raddle_json(
        "traffic", "write", experiment, "--isolated", "--out", f"alone-{name}", folder=folder
    )
    assert 0 < alone["flows"] < count


def test_written_flows_say_when_who_and_how_much(experiment: Path) -> None:
    raddle("traffic", "write", experiment, "--out", "f.parquet", folder=experiment.parent)
    table = pq.read_table(experiment.parent / "f.parquet")
    assert {"start_ps", "src", "dst", "size_bytes", "class"} <= set(table.column_names)


WRONG = {
    "no unit": ('kind = "leaf-spine"', 'kind = "leaf-spine"\ndelay = 5', "quick.toml:5:9", "unit"),
    "unknown key": ("leaves = 2", "leafs = 2", "quick.toml:5:1", "did you mean `leaves`"),
    "wrong type": ("leaves = 2", 'leaves = "two"', "quick.toml:5:10", "leaves"),
    "unknown scheme": ('"hpcc"]', '"hpc"]', "quick.toml:11:20", "did you mean `hpcc`"),
    "cut": ('schemes = ["none", "hpcc"]', 'schemes = ["none", ', "quick.toml:11", "array"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_experiment_is_one_screen_with_place_and_cure(tmp_path: Path, name: str) -> None:
    old, new, place, cure = WRONG[name]
    assert old in QUICK
    (tmp_path / "quick.toml").write_text(QUICK.replace(old, new))
    for words in (
        ("run", "quick.toml"),
        ("run", "quick.toml", "--dry-run"),
        ("sweep", "quick.toml", "--set", "simulation.buffer=4MiB"),
        ("traffic", "describe", "quick.toml"),
    ):
        done = raddle(*words, folder=tmp_path, status=2)
        assert place in done.stderr, words
        assert cure in done.stderr, words
        assert len(done.stderr.splitlines()) < 24
        assert done.stdout == ""
    assert [p.name for p in tmp_path.iterdir()] == ["quick.toml"]


@pytest.mark.parametrize(
    ("words", "text", "expected"),
    [
        (("fabric", "build", "bad"), 'kind = "leaf-spine"\nleaves = 2\n', "bad:"),
        (("fabric", "show", "bad"), "20 2 19\n2 3\n0 2 100Gbps", "bad:"),
        (("fabric", "show", "absent"), "", "absent"),
        (("traffic", "describe", "bad.csv"), "src,dst\n1,2\n", "bad.csv:1"),
        (("traffic", "describe", "bad.txt"), "2\n0 1 3 100 -5 0\n", "bad.txt:2"),
        (("traffic", "write", "bad.txt", "--out", "x.foo"), "1\n", "x.foo"),
        (("traffic", "plot", "bad.txt", "--out", "x.bmp"), "1\n", ".png"),
        (("run", "absent.toml"), "", "raddle init absent.toml"),
        (("report", "absent"), "", "no results folder"),
        (("compare", "absent", "absent"), "", "no results folder"),
    ],
)
def test_bad_input_ends_with_status_2_and_names_its_place(
    tmp_path: Path, words: tuple[str, ...], text: str, expected: str
) -> None:
    name = next((w for w in words if w.startswith("bad")), "bad")
    (tmp_path / name).write_text(text)
    done = raddle(*words, folder=tmp_path, status=2)
    assert expected in done.stderr
    assert len(done.stderr.splitlines()) < 24
    assert [p.name for p in tmp_path.iterdir()] == [name]


def test_an_unsound_map_is_a_no_and_not_bad_usage(tmp_path: Path) -> None:
    (tmp_path / "map.toml").write_text('kind = "leaf-spine"\nleaves = 0\nspines = 1\n')
    done = raddle("fabric", "check", "map.toml", folder=tmp_path, status=1)
    assert "map.toml:" in done.stderr
    assert raddle_json("fabric", "check", "map.toml", folder=tmp_path, status=1)["sound"] is False


def test_with_json_an_error_is_json_too(tmp_path: Path) -> None:
    answer = raddle_json("run", "absent.toml", folder=tmp_path, status=2)
    assert answer["schema"] == 1
    assert answer["error"]["exit_code"] == 2
    assert "absent.toml" in answer["error"]["message"]


def test_the_doctor_tries_the_core(tmp_path: Path) -> None:
    answer = raddle_json("doctor", folder=tmp_path)
    assert answer["healthy"] is True
    core = next(c for c in answer["checks"] if "core" in c["what"])
    assert core["works"] is True


def test_two_runs_of_one_experiment_agree(experiment: Path) -> None:
    folder = experiment.parent
    for out in ("a", "b"):
        raddle("run", experiment, "--out", out, "--no-report", "--jobs", "2", folder=folder)
    answer = raddle_json("compare", "a", "b", "--tolerance", "0", folder=folder)
    assert answer["agree"] is True


def test_the_shell_completes_commands(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", "from raddle.cli import main; main()"],
        env={"_RADDLE_COMPLETE": "complete_bash", "COMP_WORDS": "raddle sw", "COMP_CWORD": "1"},
        capture_output=True, text=True, check=True, cwd=tmp_path,
    )  # fmt: skip
    assert done.stdout.split() == ["sweep"]


def test_the_schema_is_json_and_names_every_table(tmp_path: Path) -> None:
    schema = json.loads(raddle("schema", folder=tmp_path).stdout)
    tables = {"fabric", "traffic", "simulation", "schemes", "record", "score"}
    assert tables <= set(schema["properties"])


@pytest.mark.scale
def test_a_built_wheel_works_in_a_fresh_environment(tmp_path: Path) -> None:
    root = Path(__file__).parents[2]
    subprocess.run(
        [sys.executable, "-m", "maturin", "build", "--release", "--locked", "--quiet",
         "--out", str(tmp_path)],
        cwd=root, check=True,
    )  # fmt: skip
    (wheel,) = tmp_path.glob("raddle-*.whl")
    venv.create(tmp_path / "fresh", with_pip=True)
    python = tmp_path / "fresh" / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "--quiet", wheel], check=True)
    (tmp_path / "quick.toml").write_text(QUICK)
    program = str(tmp_path / "fresh" / "bin" / "raddle")
    command = [program, "run", "quick.toml", "--out", "out"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out" / "report.html").is_file()
