"""Which choice of roots leaves a TFI of 1 on 3-D grids: what is forced, and what is found.

The paper's dynamic variant chooses among the L3 switches of a group's TN. Links below a TN do not
depend on that choice: two groups of one colour that share such a link have to merge whatever is
chosen. `forced` counts them; `exhaust` tries all choices on a small fabric; `greedy` also lets a
group take any of the p TNs that hang on its L1 switches.
"""

import itertools
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from raddle.results.reproduction import Row, Table, cell, finding

HERE = Path(__file__).resolve().parent

Link = tuple[int | str, ...]
"""A link between switches, with the colour that it is used with."""


@dataclass(frozen=True, slots=True)
class Tree4:
    """The four-level fat tree of 1.3: m = terminals of an L0 switch."""

    m: int
    q: int
    p: int
    w: int
    cns: int
    colours: int

    @property
    def terminals(self) -> int:
        """Of all CNs."""
        return self.cns * self.q * self.m


PAPER = Tree4(m=16, q=32, p=6, w=16, cns=64, colours=32)
SMALL = Tree4(m=2, q=2, p=2, w=2, cns=4, colours=3)
"""16 terminals, three colours: one for each direction."""
SMALL_GRIDS = ((4, 2, 2), (2, 4, 2), (2, 2, 4))
GRIDS = ((64, 32, 16), (32, 32, 32), (25, 50, 26))


@dataclass(frozen=True, slots=True)
class Line:
    """A group: a row, column or line of a grid with a process on each terminal."""

    members: tuple[int, ...]
    colour: int
    l1: int
    """The L1 switch of each CN that its trees use."""


def lines(tree: Tree4, dims: tuple[int, int, int]) -> list[Line]:
    """The groups of a grid with colours by layers, one for each direction (3.1)."""
    x, y, z = dims
    along = [
        [[a + x * (b + y * c) for a in range(x)] for c in range(z) for b in range(y)],
        [[a + x * (b + y * c) for b in range(y)] for c in range(z) for a in range(x)],
        [[a + x * (b + y * c) for c in range(z)] for b in range(y) for a in range(x)],
    ]
    count = sum(map(len, along))
    shares = [max(1, tree.colours * len(groups) // count) for groups in along[:2]]
    shares.append(tree.colours - sum(shares))
    found, first = [], 0
    for groups, share in zip(along, shares, strict=True):
        for place, members in enumerate(groups):
            spt = first * tree.m + place % (share * tree.m)
            found.append(Line(tuple(members), spt // tree.m, spt % tree.m))
        first += share
    return found


def below(tree: Tree4, line: Line) -> list[Link]:
    """Links from L0 to L1 switches: all choices of a TN have them."""
    switches = sorted({member // tree.m for member in line.members})
    return [] if len(switches) == 1 else [("l0", line.colour, it, line.l1) for it in switches]


def above(tree: Tree4, line: Line, tn: int) -> list[Link]:
    """Links from CNs to L2 switches of a TN: all choices of an L3 switch have them."""
    cns = sorted({member // (tree.m * tree.q) for member in line.members})
    return [] if len(cns) == 1 else [("cn", line.colour, it, tn) for it in cns]


def top(tree: Tree4, line: Line, tn: int, root: int) -> list[Link]:
    """Links from L2 switches to the L3 switch that is the root."""
    blocks = sorted({member // (tree.m * tree.q * tree.w) for member in line.members})
    return [] if len(blocks) == 1 else [("l2", line.colour, it, tn, root) for it in blocks]


def with_root(tree: Tree4, line: Line, tn: int, root: int) -> list[Link]:
    """All links between switches."""
    return [*below(tree, line), *above(tree, line, tn), *top(tree, line, tn, root)]


def own_tn(tree: Tree4, line: Line) -> int:
    """Equation (3)."""
    return line.l1 * tree.p + line.colour % tree.p


def largest(groups: Sequence[Sequence[Link]]) -> int:
    """The most groups that hang together by shared links: a lower bound of the largest TFI.

    It is what merging leaves where the merged tree adds no link that another group uses.
    """
    parent = list(range(len(groups)))

    def find(at: int) -> int:
        while parent[at] != at:
            parent[at] = parent[parent[at]]
            at = parent[at]
        return at

    first: dict[Link, int] = {}
    for place, links in enumerate(groups):
        for link in links:
            parent[find(place)] = find(first.setdefault(link, place))
    return max(Counter(find(place) for place in range(len(groups))).values())


def fixed(tree: Tree4, groups: Sequence[Line]) -> int:
    """Largest TFI with the first L3 switch of the TN."""
    return largest([with_root(tree, it, own_tn(tree, it), 0) for it in groups])


def forced(tree: Tree4, groups: Sequence[Line]) -> int:
    """No choice of L3 switches in the groups' TNs has a smaller largest TFI."""
    return largest([[*below(tree, it), *above(tree, it, own_tn(tree, it))] for it in groups])


def forced_any_tn(tree: Tree4, groups: Sequence[Line]) -> int:
    """No choice of TNs on the groups' L1 switches has a smaller one."""
    return largest([below(tree, it) for it in groups])


@dataclass(frozen=True, slots=True)
class Placed:
    """What a greedy choice came to."""

    groups: int
    without_root: int
    """Groups that found no root whose links were all free: they have to merge."""
    max_tfi: int
    """Of the groups that hang together then."""


def choices(tree: Tree4, line: Line, *, any_tn: bool) -> list[tuple[int, int]]:
    """TNs and L3 switches that a group may have, its own TN first."""
    own, first = own_tn(tree, line), line.l1 * tree.p
    more = [tn for tn in range(first, first + tree.p) if tn != own] if any_tn else []
    return list(itertools.product([own, *more], range(tree.w)))


def greedy(tree: Tree4, groups: Sequence[Line], *, any_tn: bool) -> Placed:
    """Groups in order of their MGIDs take the first root whose links are all free."""
    used: set[Link] = set()
    trees: list[list[Link]] = []
    missing = 0
    for line in groups:
        for tn, root in choices(tree, line, any_tn=any_tn):
            links = with_root(tree, line, tn, root)
            if used.isdisjoint(links):
                break
        else:
            missing += 1
        used.update(links)
        trees.append(links)
    return Placed(len(groups), missing, largest(trees))


def exhaust(tree: Tree4, groups: Sequence[Line], *, any_tn: bool) -> tuple[int, int]:
    """The smallest largest TFI over all choices of roots, and how many were tried.

    Groups of different colours or L1 switches share no link: each such class is searched alone.
    """
    classes: dict[tuple[int, int], list[Line]] = defaultdict(list)
    for line in groups:
        classes[line.colour, line.l1].append(line)
    worst, tried = 1, 0
    for members in classes.values():
        least = len(members)
        for roots in itertools.product(*(choices(tree, it, any_tn=any_tn) for it in members)):
            tried += 1
            trees = (with_root(tree, it, *root) for it, root in zip(members, roots, strict=True))
            least = min(least, largest(list(trees)))
        worst = max(worst, least)
    return worst, tried


def root_rows() -> list[Row]:
    """4.3.1 (2.1): what the published TFI of dynamic roots asks for."""
    item = "4.3.1, roots"
    rows: list[Row] = []
    for dims in GRIDS:
        name = "x".join(map(str, dims))
        groups = lines(PAPER, dims)
        bound = forced(PAPER, groups)
        placed = greedy(PAPER, groups, any_tn=True)
        note = "links below the TN, which two groups share whichever L3 switch is the root"
        if dims != GRIDS[2]:
            rows.append(
                cell(
                    item=item,
                    setting=f"{name}, an L3 switch of the group's TN: least possible max TFI",
                    published=1,
                    ours=bound,
                    kind="predicted",
                    note=note,
                )
            )
            rows.append(
                cell(
                    item=item,
                    setting=f"{name}, any of the p TNs on the group's L1 switches: max TFI",
                    published=1,
                    ours=placed.max_tfi,
                    kind="chosen",
                    note=f"{placed.without_root} of {placed.groups} groups find no free root",
                )
            )
        else:
            rows.append(
                finding(
                    item=item,
                    setting=f"{name}, an L3 switch of the group's TN",
                    statement="max TFI above 1 and that of fixed roots",
                    holds=bound == fixed(PAPER, groups) > 1,
                    ours=bound,
                    note=note,
                )
            )
            rows.append(
                finding(
                    item=item,
                    setting=f"{name}, any of the p TNs on the group's L1 switches",
                    statement="max TFI above 1 and that of fixed roots",
                    holds=placed.max_tfi == fixed(PAPER, groups),
                    ours=placed.max_tfi,
                    note=f"{placed.without_root} of {placed.groups} groups find no free root, "
                    f"fixed roots have {fixed(PAPER, groups)}",
                )
            )
    return rows


def exhaustive_table() -> Table:
    """The least max TFI over all choices of roots on a small fabric, and what links force."""
    rows = []
    for dims in SMALL_GRIDS:
        groups = lines(SMALL, dims)
        for any_tn, where in ((False, "an L3 switch of its TN"), (True, "any TN of its L1")):
            least, tried = exhaust(SMALL, groups, any_tn=any_tn)
            bound = (forced_any_tn if any_tn else forced)(SMALL, groups)
            rows.append(("x".join(map(str, dims)), where, tried, least, bound))
    return Table(
        ("grid", "a group's root", "choices tried", "least max TFI", "forced by shared links"), rows
    )
