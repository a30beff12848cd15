"""Packets to fault-tolerant pairs of groups, and what is left of them when cables are cut."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from subnet_harness import Cable, Fabric, Table, walk


def cables_between_switches(fabric: Fabric) -> list[Cable]:
    """Every cable whose ends are both switches, once."""
    found = {
        frozenset((switch, peer)): None
        for switch in fabric.switches
        for peer, _ in fabric.ports[switch]
        if peer[0] == "l"
    }
    return list(found)


#: Marks both groups of a fault-tolerant pair, and the second of them, in a MGID's low half.
PAIR, SECOND = 1 << 63, 1 << 62


def pair(number: int) -> tuple[int, int]:
    """The MGID numbers of a pair's two groups."""
    return PAIR | number, PAIR | SECOND | number


@dataclass
class Copies:
    """What members got of the packets of others."""

    #: Deliveries by the number of copies that came.
    count: Counter[int] = field(default_factory=Counter)
    looping: int = 0


class Packets:
    """Packets through tables: every member of every group sends one by all MLIDs of the group."""

    def __init__(
        self,
        fabric: Fabric,
        table: Table,
        groups: Mapping[int, Sequence[str]],
        ways: Mapping[int, Sequence[int]],
        dead: Collection[Cable] = (),
    ) -> None:
        """Walk all of them; cables that are `dead` carry none."""
        self._fabric, self._table, self._dead = fabric, table, tuple(dead)
        self._walks = [
            (source, members, [(mlid, walk(fabric, table, mlid, source, dead)) for mlid in mlids])
            for number, members in groups.items()
            for mlids in [ways[number]]
            for source in members
        ]

    def copies(self, cut: Cable = frozenset()) -> Copies:
        """Count what came, with one more cable cut."""
        result = Copies()
        for source, members, walks in self._walks:
            found: Counter[str] = Counter()
            for mlid, whole in walks:
                there = whole
                # a packet that the cable is not asked to carry goes as before
                if cut in whole.asked:
                    there = walk(self._fabric, self._table, mlid, source, (*self._dead, cut))
                found += there.arrivals
                result.looping += there.looping
            result.count.update(found[member] for member in members if member != source)
        return result
