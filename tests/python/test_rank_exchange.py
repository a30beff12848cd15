"""What ranks of one run say to each other before it begins, with threads for ranks."""

import threading
from collections.abc import Sequence
from pathlib import Path

from raddle import core
from raddle.errors import RaddleError
from raddle.plan import Plan
from raddle.services.run import plan_text

EXPERIMENT = """\
schema = 1
name = "pair"
[fabric]
kind = "leaf-spine"
leaves = 4
spines = 4
hosts_per_leaf = 2
[traffic]
generator = "permutation"
size = "10KB"
[simulation]
schemes = ["dcqcn"]
seeds = [1]
"""


def plan(text: str = EXPERIMENT) -> Plan:
    return plan_text(text, Path("pair.toml"))


class Pair:
    """Two ranks."""

    def __init__(self) -> None:
        self.letters: list[list[bytes]] = [[], []]
        self.meeting = threading.Barrier(2)

    def exchange(self, rank: int, letters: Sequence[bytes]) -> list[bytes]:
        """Give and take, for one of them."""
        self.letters[rank] = list(letters)
        self.meeting.wait(30)
        taken = [self.letters[other][rank] for other in range(2)]
        self.meeting.wait(30)
        return taken

    def run(self, leading: Plan, following: str, out: Path) -> list[str]:
        """Run both; what each failed with, empty if it did not."""
        said = ["", ""]
        progress = core.runs.new_progress()

        def lead() -> None:
            core.runs.run_leading(
                leading, 0, out, 1, progress, 2, lambda own: self.exchange(0, own)
            )

        def follow() -> None:
            core.runs.run_following(following, 0, 1, 1, 2, lambda own: self.exchange(1, own))

        def guarded(rank: int) -> None:
            try:
                (lead, follow)[rank]()
            except (RaddleError, OSError) as error:
                said[rank] = str(error)

        ranks = [threading.Thread(target=guarded, args=(rank,)) for rank in range(2)]
        for rank in ranks:
            rank.start()
        for rank in ranks:
            rank.join(60)
            assert not rank.is_alive()
        return said


def test_two_ranks_run_as_one(tmp_path: Path) -> None:
    planned, progress = plan(), core.runs.new_progress()
    assert Pair().run(planned, planned.text, tmp_path / "pair") == ["", ""]
    core.runs.run(planned, 0, tmp_path / "alone", 1, progress)
    files = [
        {file.name: file.read_bytes() for file in (tmp_path / name).rglob("*") if file.is_file()}
        for name in ("pair", "alone")
    ]
    assert files[0] == files[1]
    assert "flows.parquet" in files[0]


def test_a_rank_with_other_files_is_refused(tmp_path: Path) -> None:
    other = plan(EXPERIMENT.replace("10KB", "20KB"))
    said = Pair().run(plan(), other.text, tmp_path)
    assert said[0] == "rank 1: it reads other files: all ranks need the same ones"
    assert said[1] == "rank 0: it reads other files: all ranks need the same ones"
    assert not list(tmp_path.glob(".runs/*"))


def test_a_rank_that_cannot_begin_says_why_to_all(tmp_path: Path) -> None:
    said = Pair().run(plan(), "no plan", tmp_path)
    assert said[1].startswith("not a plan: ")
    assert said[0] == f"rank 1: {said[1]}"


def test_a_folder_that_cannot_be_made_ends_all(tmp_path: Path) -> None:
    (tmp_path / ".runs").write_text("a file where a folder should be")
    planned = plan()
    said = Pair().run(planned, planned.text, tmp_path)
    assert "File exists" in said[0]
    assert said[1].startswith(f"rank 0: cannot make the folder {tmp_path}/.runs: ")
