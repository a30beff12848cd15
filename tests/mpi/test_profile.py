"""`raddle lab mpirun --profile`: what was advised is set, and what cannot be is told."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from mpi_lab import TestLab, build, lab_up, needs, totals
from raddle.errors import ExperimentError, LabError
from raddle.services.advice import read_advice
from raddle.services.lab import Backend, Lab
from raddle.services.lab.verify import verify

pytestmark = needs("openmpi")

OFFLOAD = 'schema = 1\n[settings]\ncollectives = "offload"\nscheme = "hpcc"\n'
HOST = 'schema = 1\n[settings]\ncollectives = "host"\nscheduling = "both"\n'


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("programs")
    build(folder, "rounds")
    return folder / "rounds-openmpi"


@pytest.fixture(scope="module")
def lab() -> Iterator[TestLab]:
    with lab_up("profile", "--hosts", "2", "--offload", "sockets") as lab:
        yield lab


def advice(folder: Path, text: str) -> str:
    file = folder / "advice.toml"
    file.write_text(text)
    return str(file)


def test_a_program_follows_its_advice(lab: TestLab, program: Path, tmp_path: Path) -> None:
    words = ("--profile", advice(tmp_path, OFFLOAD), "--offload", "sockets", "--", program, "2000")
    report = lab.report(tmp_path / "report.json", *words)
    # Where plain calls measure faster, only those that are measured are offloaded.
    assert totals(report, "offloaded")["MPI_Allreduce"] > 0
    # What is set explicitly wins.
    report = lab.report(tmp_path / "report.json", *words, RADDLE_OFFLOAD="never")
    assert totals(report, "offloaded").total() == 0


def test_advice_to_leave_sums_to_hosts(lab: TestLab, program: Path, tmp_path: Path) -> None:
    words = ("--profile", advice(tmp_path, HOST), "--offload", "sockets", "--", program, "500")
    report = lab.report(tmp_path / "report.json", *words)
    assert totals(report, "offloaded").total() == 0
    assert "messages" in report, "messages are joined where that is faster"


def test_variables_of_an_advice(lab: TestLab, program: Path, tmp_path: Path) -> None:
    text = 'schema = 1\n[environment]\nRADDLE_SCHEDULE = "force"\nRADDLE_OFFLOAD = "never"\n'
    words = ("--profile", advice(tmp_path, text), "--offload", "off", "--", program, "100")
    report = lab.report(tmp_path / "report.json", *words)
    assert "messages" in report


def test_what_was_predicted_stands_beside_what_is_measured(
    lab: TestLab, program: Path, tmp_path: Path
) -> None:
    predicted = "[predicted]\ntime_s = 0.5\nplain_s = 1.0\n"
    file = Path(advice(tmp_path, OFFLOAD + predicted))
    found = Lab.find(lab.name)
    found.use(Backend.SOCKETS)
    words = (str(program), "3000")
    verified = verify(found, words, file, hosts=found.topology.hosts, ppn=(1, 1), pairs=2)
    told = verified.as_json()
    assert told["pairs"] == len(verified.plain_s) == len(verified.advised_s) == 2
    assert told["plain_s"]["predicted"] == 1.0
    assert told["gain_frac"]["predicted"] == 0.5
    assert 0 < told["plain_s"]["measured"] < 60
    assert told["gain_frac"]["measured"] < 1
    assert found.backend is Backend.SOCKETS, "the lab is as it was"
    with pytest.raises(LabError, match="ended with status"):
        verify(found, ("false",), file, hosts=found.topology.hosts, ppn=(1, 1), pairs=2)


def test_ranks_are_where_the_advice_has_them(lab: TestLab, tmp_path: Path) -> None:
    """Unless it is said where they are to be, or the lab has other hosts."""
    script = 'echo "rank $OMPI_COMM_WORLD_RANK on $(hostname)"'

    def places(hosts: str, *words: str) -> tuple[list[str], str]:
        file = advice(tmp_path, f'schema = 1\n[program]\nhosts = "{hosts}"\n')
        run = ("--profile", file, "--offload", "off", *words, "--", "sh", "-c", script)
        done = lab.run("mpirun", *run)
        assert done.returncode == 0, done.stderr
        return sorted(done.stdout.split("\n"))[1:], done.stderr

    assert places("h2:2,h1:1")[0] == ["rank 0 on h2", "rank 1 on h2", "rank 2 on h1"]
    assert places("h2:2,h1:1", "--hosts", "h1,h2")[0] == ["rank 0 on h1", "rank 1 on h2"]
    found, said = places("h2:1,h7:1")
    assert found == ["rank 0 on h1", "rank 1 on h2"]
    assert "note: the advice is for h2 and others" in said
    with pytest.raises(ExperimentError, match="`hosts` is 'h1': write HOST:RANKS"):
        read_advice(Path(advice(tmp_path, 'schema = 1\n[program]\nhosts = "h1"\n')))


def test_a_note_names_what_a_lab_does_not_have(lab: TestLab, program: Path, tmp_path: Path) -> None:
    words = ("--profile", advice(tmp_path, OFFLOAD), "--offload", "sockets", "--", program, "100")
    done = lab.run("mpirun", *words)
    assert done.returncode == 0, done.stderr
    assert "wrong 0" in done.stdout
    assert "note: a lab has no congestion control" in done.stderr


def test_an_advice_that_the_lab_cannot_follow(lab: TestLab, program: Path, tmp_path: Path) -> None:
    words = ("--profile", advice(tmp_path, OFFLOAD), "--offload", "off", "--", program, "10")
    done = lab.run("mpirun", *words)
    assert done.returncode == 2
    assert "add --offload xdp" in done.stderr
    rails = advice(tmp_path, "schema = 1\n[settings]\nrails = 2\n")
    done = lab.run("mpirun", "--profile", rails, "--", program, "10")
    assert done.returncode == 2
    assert "raddle lab up --rails 2" in done.stderr


def test_a_broken_profile_breaks_no_program(lab: TestLab, program: Path, tmp_path: Path) -> None:
    broken = advice(tmp_path, "schema = 1\n[settings]\nrails = 0\n")
    words = ("--offload", "sockets", "--", program, "100")
    done = lab.run("mpirun", *words, RADDLE_PROFILE=broken)
    assert done.returncode == 0, done.stderr
    assert "wrong 0" in done.stdout
    told = [line for line in done.stderr.splitlines() if "RADDLE_PROFILE" in line]
    assert len(told) == 1, done.stderr
    assert "`rails` is 0" in told[0]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("schema = 2", "write schema = 1"),
        ("schema = 1\n[setting]\n", "did you mean `settings`?"),
        ('schema = 1\n[settings]\ncollectivs = "host"\n', "did you mean `collectives`?"),
        ('schema = 1\n[settings]\ncollectives = "hosts"\n', "did you mean `host`?"),
        ("schema = 1\n[settings]\nrails = true\n", "write a number of links"),
        ("schema = 1\n[settings]\nscheme = 7\n", "write a word"),
        ('schema = 1\n[environment]\nPATH = "/"\n', "must be a RADDLE_* variable"),
        ("schema = 1\nsettings = 4\n", "must be a table"),
        ("schema = ", "this is not TOML"),
    ],
)
def test_mistakes_in_an_advice(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(ExperimentError) as caught:
        read_advice(Path(advice(tmp_path, text)))
    assert told in str(caught.value)
    assert "advice.toml" in str(caught.value)
