"""Quantities as people read them: one place, so that tables, report and messages agree."""

import difflib
from collections.abc import Iterable, Sequence

__all__ = [
    "count",
    "duration_s",
    "elapsed_s",
    "every",
    "first_few",
    "fixed",
    "join_words",
    "many",
    "map_words",
    "memory",
    "percent",
    "plural",
    "significant",
    "size",
    "span_us",
    "spelled",
    "suggest",
    "verb",
]


def fixed(value: float | None, digits: int = 2) -> str:
    """A plain number with `digits` decimals, or a dash where there is none."""
    return "–" if value is None or value != value else f"{value:,.{digits}f}"


def first_few(numbers: Sequence[int], most: int = 5) -> str:
    """The first numbers of a list, and how many more there are.

    Examples
    --------
    >>> first_few([3, 4, 9], 2)
    '3, 4 and 1 more'
    """
    named = ", ".join(map(str, numbers[:most]))
    return f"{named} and {len(numbers) - most:,} more" if len(numbers) > most else named


def significant(value: float, digits: int = 3) -> str:
    """`value` with about `digits` significant digits and no exponent."""
    if value == 0:
        return "0"
    magnitude = abs(value)
    decimals = digits - 1
    while magnitude >= 10 and decimals > 0:
        magnitude /= 10
        decimals -= 1
    while 0 < magnitude < 1 and decimals < digits + 3:
        magnitude *= 10
        decimals += 1
    return f"{value:,.{decimals}f}"


def count(value: float) -> str:
    """A count: 1234567 -> "1.23 M"."""
    for limit, factor, suffix in ((1e9, 1e9, " G"), (1e6, 1e6, " M"), (1e4, 1e3, " k")):
        if value >= limit:
            return significant(value / factor) + suffix
    return f"{value:,.0f}"


def many(number: int, what: str) -> str:
    """A number of things: "1 host", "4 hosts", "0 switches", "2 entries".

    Examples
    --------
    >>> many(1, "host"), many(1200, "switch"), many(0, "entry"), many(2, "tested flow")
    ('1 host', '1,200 switches', '0 entries', '2 tested flows')
    """
    return f"{number:,} {what if number == 1 else plural(what)}"


def map_words(hosts: int, switches: int, links: int) -> str:
    """The size of a map.

    Examples
    --------
    >>> map_words(16, 1, 16)
    '16 hosts, 1 switch, 16 links'
    """
    return f"{many(hosts, 'host')}, {many(switches, 'switch')}, {many(links, 'link')}"


def plural(what: str) -> str:
    """The plural of a thing's name, of which the last word changes.

    Examples
    --------
    >>> plural("switch"), plural("entry"), plural("key"), plural("bus")
    ('switches', 'entries', 'keys', 'buses')
    """
    if what.endswith(("s", "x", "z", "ch", "sh")):
        return f"{what}es"
    if what.endswith("y") and what[-2:-1] not in tuple("aeiou"):
        return f"{what[:-1]}ies"
    return f"{what}s"


def verb(number: int, singular: str, of_many: str) -> str:
    """The form of a verb that goes with a number of things: "1 run was", "2 runs were"."""
    return singular if number == 1 else of_many


def spelled(number: int) -> str:
    """A small number as a word."""
    words = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
    return words[number] if 0 <= number < len(words) else f"{number:,}"


def every(number: int, what: str) -> str:
    """All of so many things.

    Examples
    --------
    >>> every(2, "scheme"), every(3, "scheme"), every(12, "scheme")
    ('both schemes', 'all three schemes', 'all 12 schemes')
    """
    if number == 1:
        return f"the only {what}"
    return f"both {plural(what)}" if number == 2 else f"all {spelled(number)} {plural(what)}"


def percent(share: float) -> str:
    """A share in percent: "93 %", below ten "9.3 %", below one "0.93 %"."""
    value = 100 * share
    return f"{value:.0f} %" if value >= 9.95 or value == 0 else f"{significant(value, 2)} %"


def size(value_bytes: float) -> str:
    """A message size in decimal units, whole where it is whole: 65536 -> "65.5 kB"."""
    for factor, suffix in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if value_bytes >= factor:
            scaled = value_bytes / factor
            return (
                f"{scaled:.0f} {suffix}"
                if scaled == int(scaled)
                else (f"{significant(scaled)} {suffix}")
            )
    return f"{value_bytes:.0f} B"


def memory(value_bytes: float) -> str:
    """Memory in binary units: "1.50 GiB"."""
    for factor, suffix in ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")):
        if value_bytes >= factor:
            return f"{significant(value_bytes / factor)} {suffix}"
    return f"{value_bytes:.0f} B"


def span_us(value_us: float) -> str:
    """A simulated span, from ns to s."""
    if value_us >= 1e6:
        return f"{significant(value_us / 1e6)} s"
    if value_us >= 1e3:
        return f"{significant(value_us / 1e3)} ms"
    if value_us >= 1 or value_us == 0:
        return f"{significant(value_us)} µs"
    return f"{significant(value_us * 1e3)} ns"


def duration_s(seconds: float) -> str:
    """A wall-clock duration: "0.4 s", "12 s", "3 min 05 s", "2 h 10 min"."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min"


def elapsed_s(seconds: float) -> str:
    """Time that work took, in ms below a second: "12.3 ms", else as `duration_s`."""
    return f"{significant(1e3 * seconds)} ms" if seconds < 1 else duration_s(seconds)


def join_words(words: Iterable[str], last: str = "and") -> str:
    """Join as in: a, b and c."""
    items = list(words)
    if len(items) < 2:
        return "".join(items)
    return f"{', '.join(items[:-1])} {last} {items[-1]}"


def suggest(word: str, known: Sequence[str]) -> str:
    """What a wrong word may have meant, and what is possible.

    Examples
    --------
    >>> suggest("xpd", ["off", "sockets", "xdp"])
    'did you mean `xdp`? possible: off, sockets, xdp'
    """
    possible = f"possible: {', '.join(known)}"
    near = difflib.get_close_matches(word, known, n=1)
    return f"did you mean `{near[0]}`? {possible}" if near else possible
