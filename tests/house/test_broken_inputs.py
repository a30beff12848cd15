"""Two hundred broken inputs over all kinds of files and flags: each gives a one-screen error.

A case says which command gets what, and which words the error must have so that its reader finds
the place. The command line runs inside this process; what ends with a traceback, a Rust panic, a
wrong exit status, a hang or a half-written folder fails.
"""

import faulthandler
import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import dedent

import pytest

ROOT = Path(__file__).resolve().parents[2]
BIN = ROOT / ".venv" / "bin"
SCREEN_LINES, SCREEN_COLUMNS = 24, 100
SECONDS = 20
"""Longest time of a case on a busy machine; what takes longer hangs."""

Content = str | bytes


@dataclass(frozen=True)
class Case:
    """A broken input: words of a command, files beside it, and what the error must say."""

    name: str
    words: tuple[str, ...]
    says: str
    files: Mapping[str, Content] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    status: int = 2


EVERY_SCHEME = '["none", "dctcp", "dcqcn", "timely", "pint", "swift", "hpcc"]'
GOOD = Path(__file__).parent / "good"
EXPERIMENT = (GOOD / "experiment.toml").read_text()
for narrow, wide in (('["hpcc"]', EVERY_SCHEME), ("hosts_per_side = 2", "hosts_per_side = 4")):
    EXPERIMENT = EXPERIMENT.replace(narrow, wide)
ROUTES = (GOOD / "routes.toml").read_text()

JOBS = dedent("""\
    schema = 1

    [fabric]
    kind = "cn-tn"
    m = 2
    q = 4
    p = 2
    k = 2
    w = 2
    cns = 4

    [[running]]
    name = "old"
    hosts = [0, 1]

    [[job]]
    name = "new"
    terminals = 4
    """)

MAP = dedent("""\
    schema = 1
    [[host]]
    count = 2
    [[switch]]
    [[link]]
    a = 0
    b = 2
    rate = "100Gbps"
    delay = "1us"
    [[link]]
    a = 1
    b = 2
    rate = "100Gbps"
    delay = "1us"
    """)

GOAL = dedent("""\
    num_ranks 2
    rank 0 {
    l1: send 8b to 1 tag 0
    }
    rank 1 {
    l1: recv 8b from 0 tag 0
    }
    """)

SWITCH = dedent("""\
    schema = 1
    name = "tor1"
    address = "10.0.0.253"
    tier = 1
    secret_file = "site.secret"
    [[ports]]
    interface = "nosuch0"
    """)
SECRET = "0123456789abcdef" * 4 + "\n"


def changed(text: str, old: str, new: str) -> str:
    """Replace `old`, which must be there, once."""
    assert text.count(old) >= 1, old
    return text.replace(old, new, 1)


def experiment(name: str, old: str, new: str, says: str) -> Case:
    """Build a case of `raddle run --dry-run` with one line of the experiment changed."""
    text = changed(EXPERIMENT, old, new)
    return Case(name, ("run", "my.toml", "--dry-run"), says, {"my.toml": text})


def added(name: str, lines: str, says: str) -> Case:
    """Build a case of `raddle run --dry-run` with lines added at the experiment's end."""
    text = EXPERIMENT + lines + "\n"
    return Case(name, ("run", "my.toml", "--dry-run"), says, {"my.toml": text})


def fabric(name: str, table: str, says: str) -> Case:
    """Build a case with another `[fabric]` table."""
    text = re.sub(r"(?s)\[fabric\]\n.*?\n\n", f"[fabric]\n{table}\n\n", EXPERIMENT)
    return Case(name, ("run", "my.toml", "--dry-run"), says, {"my.toml": text})


def traffic(name: str, table: str, says: str, **files: Content) -> Case:
    """Build a case with another `[traffic]` table."""
    text = re.sub(r"(?s)\[traffic\]\n.*?\n\n", f"[traffic]\n{table}\n\n", EXPERIMENT)
    # Only what a run does reads flows.
    return Case(name, ("run", "my.toml", "--out", "out", "-q"), says, {"my.toml": text, **files})


def routes(name: str, old: str, new: str, says: str) -> Case:
    """Build a case of `raddle route` with one line of the route file changed."""
    text = changed(ROUTES, old, new)
    return Case(name, ("route", "my.toml", "--out", "out"), says, {"my.toml": text})


def jobs(name: str, old: str, new: str, says: str) -> Case:
    """Build a case of `raddle place` with one line of the job file changed."""
    return Case(name, ("place", "jobs.toml"), says, {"jobs.toml": changed(JOBS, old, new)})


def goal(name: str, old: str, new: str, says: str) -> Case:
    """Build a case of `raddle trace import` with one line of the schedule changed."""
    files = {"my.goal": changed(GOAL, old, new)}
    return Case(name, ("trace", "import", "my.goal", "--out", "a.trace.parquet"), says, files)


def costs(name: str, lines: str, says: str) -> Case:
    """Build a case of `raddle replay` of a recorded program with these costs of hosts."""
    trace = str(ROOT / "tests" / "data" / "traces" / "stencil.trace.parquet")
    words = ("replay", trace, "--out", "out", "--seeds", "1", "--schedule", "none", "-q")
    return Case(name, (*words, "--costs", "costs.toml"), says, {"costs.toml": lines + "\n"})


def replay(name: str, words: str, says: str, **files: Content) -> Case:
    """Build a case of `raddle replay` of a recorded program with more words."""
    trace = str(ROOT / "tests" / "data" / "traces" / "stencil.trace.parquet")
    return Case(name, ("replay", trace, "--out", "out", "-q", *words.split()), says, files)


def switch(name: str, old: str, new: str, says: str) -> Case:
    """Build a case of `raddle-switch --check` with one line of its file changed."""
    files = {"tor1.toml": changed(SWITCH, old, new), "site.secret": SECRET}
    return Case(name, ("raddle-switch", "--config", "tor1.toml", "--check"), says, files)


def flag(name: str, words: str, says: str, **files: Content) -> Case:
    """Build a case of a command line with good files, unless others are given."""
    good = {"my.toml": EXPERIMENT, "routes.toml": ROUTES, "jobs.toml": JOBS, "map.toml": MAP}
    return Case(name, tuple(words.split()), says, {**good, **files})


DUMBBELL = 'kind = "dumbbell"\nhosts_per_side = 4\n'
LEAF_SPINE = 'kind = "leaf-spine"\nleaves = 4\nspines = 2\nhosts_per_leaf = 4\n'

FABRICS = [
    fabric("leaf-spine without leaves", 'kind = "leaf-spine"\nleaves = 0', "leaves"),
    fabric("leaf-spine without spines", 'kind = "leaf-spine"\nleaves = 4\nspines = 0', "spines"),
    fabric("leaves by the fraction", 'kind = "leaf-spine"\nleaves = 2.5', "leaves"),
    fabric("no links per spine", LEAF_SPINE + 'links_per_spine = 0', "links_per_spine"),
    fabric("no servers", 'kind = "rail-optimised"\nservers = 0', "servers"),
    fabric("odd k", 'kind = "k-ary-fat-tree"\nk = 3', "k"),
    fabric("k of 0", 'kind = "k-ary-fat-tree"\nk = 0', "k"),
    fabric("k beyond memory", 'kind = "k-ary-fat-tree"\nk = 60000', "k"),
    fabric("k of 2^40", 'kind = "k-ary-fat-tree"\nk = 1099511627776', "k"),
    fabric("no levels", 'kind = "xgft"\nchildren = []\nparents = []', "children"),
    fabric("levels without parents", 'kind = "xgft"\nchildren = [2, 2]\nparents = [1]', "parents"),
    fabric("no children", 'kind = "xgft"\nchildren = [2, 0]\nparents = [1, 1]', "children"),
    fabric("too large", 'kind = "xgft"\nchildren = [4000, 4000]\nparents = [1, 1]', "children"),
    fabric("no pods", 'kind = "fat-tree"\npods = 0', "pods"),
    fabric("hosts as text", 'kind = "fat-tree"\nhosts_per_tor = "16"', "hosts_per_tor"),
    fabric("a key of another kind", DUMBBELL + 'pods = 4', "pods"),
    fabric("radix too small", LEAF_SPINE + 'radix = 2', "radix|ports"),
    fabric("rate of 0", DUMBBELL + 'host_rate = "0Gbps"', "host_rate"),
    fabric("rate without a number", DUMBBELL + 'host_rate = "Gbps"', "host_rate"),
    fabric("rate in bytes", DUMBBELL + 'host_rate = "100GB"', "host_rate"),
    fabric("rate beyond 64 bit", DUMBBELL + 'host_rate = "1e30Gbps"', "host_rate"),
    fabric("rate as a date", DUMBBELL + 'host_rate = 2026-01-01', "host_rate"),
    fabric("rate as a list", DUMBBELL + 'host_rate = ["100Gbps"]', "host_rate"),
    fabric("delay as a rate", DUMBBELL + 'delay = "1Gbps"', "delay"),
    fabric("delay below nothing", DUMBBELL + 'delay = "-1us"', "delay"),
    fabric("delay of years", DUMBBELL + 'delay = "99999999s"', "delay"),
    fabric("kind as a number", "kind = 5", "kind"),
    fabric("no kind", "hosts_per_side = 2", "kind"),
    fabric("no key at all", "", "fabric"),
    fabric("a map that is a folder", 'file = "."', r"read \.: it is a folder|folder|regular"),
    fabric("a map that is /dev/zero", 'file = "/dev/zero"', "/dev/zero"),
    fabric("a map in a format of nobody", 'file = "map.toml"\nformat = "xml"', "format"),
    fabric("cn-tn of no switches", 'kind = "cn-tn"\nm = 0\nq = 4\np = 2\nk = 2\nw = 2', "m"),
    fabric("cn-tn without terminals", 'kind = "cn-tn"\nm = 2\nq = 4\np = 2\nk = 2\nw = 2\n'
           "terminals_per_l0 = 0", "terminals_per_l0"),
]  # fmt: skip

TRAFFICS = [
    traffic("size of 0", 'generator = "incast"\nsources = 3\nsize = "0B"', "size"),
    traffic("size of 2^62", 'generator = "incast"\nsources = 3\nsize = "4611686018427387904B"',
            "size"),
    traffic("size as a time", 'generator = "incast"\nsources = 3\nsize = "64us"', "size"),
    traffic("no sources", 'generator = "incast"\nsources = 0\nsize = "1KiB"', "sources"),
    traffic("a target that is no host", 'generator = "incast"\nsources = 3\ntarget = 99\n'
            'size = "1KiB"', "target|99"),
    traffic("load of 0", 'generator = "poisson"\nload = 0.0\nflows = 10', "load"),
    traffic("load below nothing", 'generator = "poisson"\nload = -0.5\nflows = 10', "load"),
    traffic("load beyond the links", 'generator = "poisson"\nload = 50.0\nflows = 10', "load"),
    traffic("load that is not a number", 'generator = "poisson"\nload = nan\nflows = 10', "load"),
    traffic("load as text", 'generator = "poisson"\nload = "half"\nflows = 10', "a number"),
    traffic("poisson without an end", 'generator = "poisson"\nload = 0.5', "flows|duration"),
    traffic("sizes from nowhere", 'generator = "poisson"\nload = 0.5\nflows = 10\n'
            'sizes = { file = "nowhere.txt" }', "nowhere.txt"),
    traffic("sizes that fall", 'generator = "poisson"\nload = 0.5\nflows = 10\n'
            'sizes = { table = [["2KiB", 0.5], ["1KiB", 1.0]] }', "sizes"),
    traffic("shares beyond 1", 'generator = "poisson"\nload = 0.5\nflows = 10\n'
            'sizes = { table = [["1KiB", 0.5], ["2KiB", 1.5]] }', "sizes"),
    traffic("tested share beyond 1", 'generator = "hpc-mix"\ntested_share = 1.5', "tested_share"),
    traffic("load factor below 0", 'generator = "hpc-mix"\nload_factor = -1.0', "load_factor"),
    traffic("fan of 0", 'generator = "hpc-mix"\nfan = 0', "fan"),
    traffic("a group of one", 'generator = "all-to-all"\nsize = "1KiB"\ngroup = 1', "group"),
    traffic("congestor share beyond 1", 'generator = "gpcnet"\ncongestor_share = 2.0',
            "congestor_share"),
    traffic("a victim of nobody", 'generator = "gpcnet"\nvictims = ["latancy"]', "latancy"),
    traffic("no ranks per host", 'generator = "gpcnet"\nranks_per_host = 0', "ranks_per_host"),
    traffic("a flow to itself", 'generator = "flows"\n[[traffic.flow]]\nsrc = 1\ndst = 1\n'
            'size = "1KiB"', "itself|src|dst"),
    traffic("a flow of no bytes", 'generator = "flows"\n[[traffic.flow]]\nsrc = 0\ndst = 1\n'
            'size = "0B"', "size"),
    traffic("a flow from a ghost", 'generator = "flows"\n[[traffic.flow]]\nsrc = "ghost"\n'
            'dst = 1\nsize = "1KiB"', "ghost"),
    traffic("a flow file in UTF-16", 'file = "flows.csv"',
            "flows.csv", **{"flows.csv": "src,dst\n".encode("utf-16")}),
    traffic("a flow file with NUL", 'file = "flows.csv"',
            "flows.csv", **{"flows.csv": b"src,dst,size_bytes,start_ns\n0,1,\0\0,0\n"}),
    traffic("a flow file of one endless line", 'file = "flows.csv"', "flows.csv",
            **{"flows.csv": "9" * 1_000_000}),
    traffic("a flow file with two headers", 'file = "flows.csv"', "flows.csv:2",
            **{"flows.csv": "src,dst,size_bytes,start_ns\n" * 2}),
    traffic("a column twice", 'file = "flows.csv"', "src",
            **{"flows.csv": "src,src,dst,size_bytes,start_ns\n0,0,1,10,0\n"}),
    traffic("a time before the start", 'file = "flows.csv"', "start_ns|flows.csv:2",
            **{"flows.csv": "src,dst,size_bytes,start_ns\n0,1,10,-5\n"}),
    traffic("classes from nowhere", 'file = "flows.txt"\nformat = "hpcc-ns3"\n'
            'classes = "nowhere.txt"', "nowhere.txt", **{"flows.txt": "1\n0 4 3 100 10 0.0\n"}),
]  # fmt: skip

SIMULATIONS = [
    added("buffer of 0", 'buffer = "0B"', "buffer"),
    added("buffer below a packet", 'buffer = "100B"', "buffer"),
    added("buffer of an exbibyte", 'buffer = "1099511627776MiB"', "buffer"),
    added("mtu of 0", 'mtu = "0B"', "mtu"),
    added("mtu of a gibibyte", 'mtu = "1GiB"', "mtu"),
    added("mtu without a unit", "mtu = 1000", "mtu"),
    added("lossless as text", 'lossless = "yes"', "lossless"),
    added("end at 0", 'end = "0s"', "end"),
    added("a key twice", "seeds = [1]", "seeds"),
    experiment("seeds below 0", "seeds = [1]", "seeds = [-1]", "seeds"),
    experiment("seeds by the fraction", "seeds = [1]", "seeds = [1.5]", "seeds"),
    experiment("a seed twice", "seeds = [1]", "seeds = [1, 1]", "seed"),
    experiment("no seeds", "seeds = [1]", "seeds = []", "seeds"),
    experiment("a scheme twice", '"hpcc"]', '"hpcc", "hpcc"]', "hpcc"),
    experiment("a scheme as a number", '"hpcc"]', "7]", "schemes"),
    added("a path choice of nobody", 'path_choice = "spray-all"', "path_choice"),
    added("compat of nobody", 'compat = "ns-2"', "compat"),
    added("a timeout of 0", 'retransmission_timeout = "0s"', "retransmission_timeout"),
    added("a least rate of 0", 'min_rate = "0bps"', "min_rate"),
    added("a fault of no link", '[[simulation.faults]]\nlink = ["h0", "h1"]\ndown = "1us"',
          "link|h0"),
    added("a fault of a ghost", '[[simulation.faults]]\nlink = ["ghost", "h1"]\ndown = "1us"',
          "ghost"),
    added("up before down", '[[simulation.faults]]\nlink = [0, 8]\ndown = "9us"\nup = "1us"',
          "up"),
    added("a fault of one end", '[[simulation.faults]]\nlink = [0]\ndown = "1us"', "link"),
    added("gain beyond 1", "[schemes.dcqcn]\ngain = 2.0", "gain"),
    added("gain of 0", "[schemes.dctcp]\ngain = 0.0", "gain"),
    added("kmin above kmax", '[schemes.dcqcn]\necn_kmin = "400KiB"\necn_kmax = "100KiB"',
          "ecn_kmin.*|ecn_kmax"),
    added("kmax above the buffer", '[schemes.dcqcn]\necn_kmax = "1TiB"', "ecn_kmax"),
    added("a mark above the buffer", '[schemes.dctcp]\necn_threshold = "1TiB"', "ecn_threshold"),
    added("pmax beyond 1", "[schemes.dcqcn]\necn_pmax = 1.5", "ecn_pmax"),
    added("window of 0", '[schemes.hpcc]\nwindow = "0B"', "window"),
    added("window of 0 without control", '[schemes.none]\nwindow = "0B"', "window"),
    added("utilisation of 0", "[schemes.hpcc]\ntarget_utilisation = 0.0", "target_utilisation"),
    added("utilisation beyond 1", "[schemes.hpcc]\ntarget_utilisation = 7.5",
          "target_utilisation"),
    added("t_low above t_high", '[schemes.timely]\nt_low = "900us"\nt_high = "50us"',
          "t_low|t_high"),
    added("a base of 1", "[schemes.pint]\nlog_base = 1.0", "log_base"),
    added("a chance beyond 1", "[schemes.pint]\nprobability = 2.0", "probability"),
    added("beta below 0", "[schemes.swift]\nbeta = -0.5", "beta"),
    added("a key of another scheme", "[schemes.hpcc]\necn_kmin = '1KiB'", "ecn_kmin"),
    added("a table for a scheme of nobody", "[schemes.bbr]\ngain = 1.0", "bbr"),
    added("samples all the time", '[record]\nsample_interval = "0s"', "sample_interval"),
    added("weights of nothing", "[score.weights]\nlong = 0.0\nshort = 0.0\nallreduce = 0.0",
          "weights"),
    added("a weight beyond 1", "[score.weights]\nlong = 3.0\nshort = 0.0\nallreduce = 0.0",
          "long|weights"),
    added("a table twice", "[traffic]\ngenerator = 'incast'", "traffic"),
    added("rails without a rate", "[rails]\nrates = []", "rates"),
    added("a rail of no rate", '[rails]\nrates = ["0Gbps"]', "rates"),
]  # fmt: skip

TEXTS = [
    Case("an experiment in UTF-16", ("run", "my.toml"), "my.toml",
         {"my.toml": EXPERIMENT.encode("utf-16")}),
    Case("an experiment in Latin-1", ("run", "my.toml"), "my.toml",
         {"my.toml": EXPERIMENT.encode() + b"# \xe9\n"}),
    Case("an experiment of NULs", ("run", "my.toml"), "my.toml", {"my.toml": b"\0" * 4096}),
    Case("an experiment that is a folder", ("run", "."), "folder|regular|directory"),
    Case("an experiment that is not there", ("run", "nowhere.toml"), "nowhere.toml"),
    Case("an experiment that is /dev/zero", ("run", "/dev/zero"), "/dev/zero"),
    Case("an experiment that is a pipe", ("run", "pipe"), "pipe", {"pipe": "a FIFO"}),
    Case("an experiment that is a loop", ("run", "loop"), "loop", {"loop": "a link to itself"}),
    Case("an experiment that is a results folder's table", ("run", "flows.parquet"),
         "flows.parquet", {"flows.parquet": b"PAR1\x15\x04\xff\xfePAR1"}),
    Case("an include that is not there", ("run", "my.toml"), "nowhere.toml",
         {"my.toml": 'include = ["nowhere.toml"]\n' + EXPERIMENT}),
    Case("an include of a folder", ("run", "my.toml"), "include|folder|regular|directory",
         {"my.toml": 'include = ["."]\n' + EXPERIMENT}),
    Case("an include of an include of itself", ("run", "a.toml"), "a.toml|b.toml",
         {"a.toml": 'include = ["b.toml"]\n' + EXPERIMENT,
          "b.toml": 'include = ["a.toml"]\nschema = 1\n'}),
    Case("deep brackets", ("run", "my.toml"), "my.toml",
         {"my.toml": "a = " + "[" * 5000 + "]" * 5000}),
    Case("a long key", ("run", "my.toml"), "my.toml", {"my.toml": "k" * 100_000 + " = 1\n"}),
    Case("a long value", ("run", "my.toml"), "my.toml",
         {"my.toml": 'schema = "' + "v" * 100_000 + '"\n'}),
    Case("a colour code in a key", ("run", "my.toml"), "my.toml",
         {"my.toml": EXPERIMENT + '"\\u001b[31mred" = 1\n'}),
]  # fmt: skip

ROUTE_CASES = [
    routes("mgids beyond the table", "colours = 8", "colours = 8\nmlids = 99999999", "mlids"),
    routes("dims of one", "[8, 4]", "[1]", "dims"),
    routes("dims below 0", "[8, 4]", "[8, -4]", "dims"),
    routes("dims by the fraction", "[8, 4]", "[8, 4.5]", "dims"),
    routes("four dims", "[8, 4]", "[2, 2, 2, 4]", "dims"),
    routes("dims as text", "[8, 4]", '"8x4"', "dims"),
    routes("an engine twice", '["c-mr4lms-fixed", "broadcast"]', '["mr4lms", "mr4lms"]', "mr4lms"),
    routes("engines as text", '["c-mr4lms-fixed", "broadcast"]', '"mr4lms"', "engines"),
    routes("colours by the fraction", "colours = 8", "colours = 8.5", "colours"),
    routes("layers of nobody", "dims = [8, 4]", 'dims = [8, 4]\nlayers = "loose"', "layers"),
    routes("no processes", "dims = [8, 4]", "dims = [8, 4]\nprocesses_per_terminal = 0",
           "processes_per_terminal"),
    routes("a seed below 0", '"grid"\ndims = [8, 4]', '"random"\ncount = 4\nseed = -1', "seed"),
    routes("groups beyond the machine", '"grid"\ndims = [8, 4]',
           '"random"\ncount = 4\nmembers_per_group = 1000000', "members_per_group"),
    routes("groups from a folder", '"grid"\ndims = [8, 4]', '"file"\nfile = "."',
           r"format of `?\."),
    routes("groups from /dev/zero", '"grid"\ndims = [8, 4]', '"file"\nfile = "/dev/zero"',
           "/dev/zero"),
    routes("a credit check of maybe", "colours = 8", 'colours = 8\ncredit_check = "maybe"',
           "credit_check"),
    routes("a traffic table in a route file", "[groups]", "[traffic]\n[groups]", "traffic"),
    jobs("a job of no hosts", "terminals = 4", "terminals = 0", "terminals"),
    jobs("a job of fewer than none", "terminals = 4", "terminals = -4", "terminals"),
    jobs("a job without a name", 'name = "new"\n', "", "name"),
    jobs("a job beyond the machine", "terminals = 4", "terminals = 40000000000", "terminals"),
    jobs("running on a ghost", "hosts = [0, 1]", 'hosts = ["ghost"]', "ghost"),
    jobs("running twice on a host", "hosts = [0, 1]", "hosts = [1, 1]", "hosts|1"),
    jobs("running on a switch", "hosts = [0, 1]", "hosts = [4000]", "4000"),
    jobs("a name twice", 'name = "new"', 'name = "old"', "old"),
    jobs("a job file without a machine", "[fabric]", "[fabrik]", "fabric"),
    jobs("a key of nobody", "terminals = 4", "terminals = 4\npriority = 3", "priority"),
]  # fmt: skip

TRACES = [
    goal("ranks of nobody", "num_ranks 2", "num_ranks 0", "num_ranks|ranks"),
    goal("ranks beyond memory", "num_ranks 2", "num_ranks 99999999999", "num_ranks|ranks"),
    goal("no ranks said", "num_ranks 2\n", "", "num_ranks"),
    goal("a message to a ghost", "to 1", "to 7", "7"),
    goal("a message to itself", "to 1", "to 0", "0"),
    goal("a message of no number", "send 8b", "send xb", "my.goal.*3"),
    goal("a message of 2^62 bytes", "send 8b", "send 4611686018427387904b", "my.goal: .*46116860"),
    goal("a message that nobody takes", "recv 8b from 0 tag 0", "calc 1", "receive|send"),
    goal("another tag", "from 0 tag 0", "from 0 tag 9", "tag|receive|send"),
    goal("an open brace", "}\nrank 1", "rank 1", "my.goal"),
    goal("a rank twice", "rank 1 {", "rank 0 {", "rank"),
    goal("a label twice", "l1: send 8b to 1 tag 0\n",
         "l1: send 8b to 1 tag 0\nl1: calc 5\n", "my.goal.*4.*label"),
    goal("a need of a ghost", "l1: send 8b to 1 tag 0\n",
         "l1: send 8b to 1 tag 0\nl1 requires l9\n", "l9"),
    Case("a trace that is text", ("trace", "show", "a.trace.parquet"), "a.trace.parquet",
         {"a.trace.parquet": "rank,start\n"}),
    Case("a trace of nothing", ("trace", "show", "a.trace.parquet"), "a.trace.parquet",
         {"a.trace.parquet": b""}),
    Case("a trace that is a folder", ("trace", "show", "."), "folder|regular|directory"),
    Case("a trace that is not there", ("trace", "times", "a.trace.parquet"), "a.trace.parquet"),
    Case("a trace that is a pipe", ("trace", "export", "pipe"), "pipe", {"pipe": "a FIFO"}),
    costs("costs: mtu of 0", 'mtu = "0B"', "mtu"),
    costs("costs: a gap of 1000 s", 'nic_gap = "1000s"', "nic_gap"),
    costs("costs: a gap below 0", 'nic_gap = "-1ns"', "nic_gap"),
    costs("costs: a cost of nobody", 'send_overheat = "1ns"', "send_overhead"),
    costs("costs: a number", "send_overhead = 300", "send_overhead"),
    costs("costs: a size as a time", 'eager_limit = "16us"', "eager_limit"),
    costs("costs: an overhead of a day", 'send_overhead = "86400s"', "send_overhead"),
    costs("costs: no TOML", "send_overhead", "costs.toml"),
    replay("replay on a map of nowhere", "--fabric nowhere.toml", "nowhere.toml"),
    replay("replay by a placement of nobody", "--placement round", "placement|round"),
    replay("replay in blocks of 0", "--placement blocks:0", "blocks"),
    replay("replay in blocks of half", "--placement blocks:0.5", "blocks"),
    replay("replay under a scheme of nobody", "--scheme bbr", "bbr"),
    replay("replay by a schedule of nobody", "--schedule sorted", "sorted"),
    replay("replay by a scope of nobody", "--scope job", "scope|job"),
    replay("replay with a skew below 0", "--start-skew=-1us", "start-skew"),
    replay("replay with a skew without a unit", "--start-skew 5", "start-skew"),
    replay("replay with gaps beyond 1", "--gap-share 1.5", "gap-share"),
    replay("replay with no seeds", "--seeds 0", "seeds"),
    replay("replay on a map too small", "--fabric map.toml --placement recorded",
           "host", **{"map.toml": MAP}),
    flag("a program of nobody", "trace generate cooking --out a.trace.parquet", "cooking"),
    flag("no ranks", "trace generate transport --ranks 0 --out a.trace.parquet", "ranks"),
    flag("a gap without a unit", "trace generate transport --gap 10 --out a.trace.parquet", "gap"),
    flag("a trace without its ending", "trace generate transport --out a.parquet",
         r"\.trace\.parquet"),
]  # fmt: skip

FLAGS = [
    flag("no such command", "simulate my.toml", "simulate"),
    flag("no such option", "run my.toml --output out", "--out"),
    flag("no jobs", "run my.toml --jobs 0", "jobs"),
    flag("jobs as text", "run my.toml --jobs many", "jobs"),
    flag("results into a file", "run my.toml --out map.toml", "map.toml"),
    flag("results into a folder of others", "run my.toml --out .", "--out"),
    flag("a sweep of nothing", "sweep my.toml", "--set"),
    flag("a sweep without a value", "sweep my.toml --set simulation.buffer --dry-run",
         "simulation.buffer|KEY=VALUE"),
    flag("a sweep over a key of nobody", "sweep my.toml --set simulation.bufer=1MiB --dry-run",
         "buffer"),
    flag("a sweep over a value of nobody", "sweep my.toml --set simulation.buffer=much --dry-run",
         "buffer"),
    flag("a sweep over an empty value", "sweep my.toml --set simulation.buffer= --dry-run",
         "buffer|KEY=VALUE"),
    flag("a sweep of a key twice",
         "sweep my.toml --set simulation.buffer=1MiB --set simulation.buffer=2MiB --dry-run",
         "twice|buffer"),
    flag("a comparison with nowhere", "compare nowhere elsewhere", "nowhere"),
    flag("a comparison of files", "compare my.toml my.toml", "my.toml"),
    flag("a tolerance below 0", "compare a b --tolerance=-1", "tolerance"),
    flag("a tolerance of no number", "compare a b --tolerance nan", "tolerance"),
    flag("a report of nowhere", "report nowhere", "nowhere"),
    flag("a report of a file", "report my.toml", "my.toml"),
    flag("an experiment that is there", "init my.toml", "my.toml"),
    flag("a schema of nobody", "schema fabric2", "fabric2"),
    flag("a map in a format of nobody (build)", "fabric build my.toml --format xml", "xml"),
    flag("a map into a folder", "fabric build my.toml --out .", r"\.|folder|directory"),
    flag("an import of no dump", "fabric import my.toml --out m.toml", "my.toml"),
    flag("an import with a rate of nothing", "fabric import my.toml --rate fast", "rate"),
    flag("colours below 0", "mgid routes.toml -c -5", "colours"),
    flag("colours of 0", "mgid routes.toml -c 0", "colours"),
    flag("colours for a file that has them", "mgid routes.toml -c 4", "colours"),
    flag("a grid of one", "mgid --fabric map.toml --grid 8", "grid"),
    flag("a grid of letters", "mgid --fabric map.toml --grid AxB", "grid"),
    flag("a grid of nothing", "mgid --fabric map.toml --grid 0x4", "grid.*0|0.*grid|at least 1"),
    flag("groups and a grid", "mgid --fabric map.toml --grid 2x2 --groups g.csv", "grid|groups"),
    flag("a map without groups", "mgid --fabric map.toml", "groups|grid"),
    flag("capacity of nothing", "capacity", "--m"),
    flag("capacity of no trees", "capacity --m 0", "--m"),
    flag("capacity with colours below 0", "capacity --m 4 --colours=-1", "colours"),
    flag("flows in a format of nobody", "traffic write my.toml --out f.xyz", "xyz|--to"),
    flag("flows with a seed below 0", "traffic write my.toml --out f.csv --seed=-1", "seed"),
    flag("a picture of no kind", "traffic plot my.toml --out p.bmp", "bmp"),
    flag("a picture of nothing", "traffic plot --out p.svg", "files"),
    flag("a recording of nothing", "record --out a.trace.parquet", "command"),
    flag("a recording without its ending", "record --out a.csv -- true", r"trace\.parquet"),
    flag("a lab of no hosts", "lab up --hosts 0 --name broken", "hosts"),
    flag("a lab with a name of dots", "lab up --hosts 2 --name ../up", "name"),
    flag("a lab with rates of nothing", "lab up --hosts 2 --name broken --rates fast", "rates"),
    flag("a lab with rates for others",
         "lab up --hosts 2 --name broken --rails 2 --rates 1Gbps,1Gbps,1Gbps", "rates"),
    flag("a lab with a back-end of nobody", "lab up --hosts 2 --name broken --offload dpdk",
         "dpdk"),
    flag("a lab that is not there", "lab exec --name nosuchlab h1 -- true", "nosuchlab"),
    flag("a program in no lab", "lab mpirun --name nosuchlab -- true", "nosuchlab"),
]  # fmt: skip

SWITCHES = [
    switch("a switch of another schema", "schema = 1", "schema = 2", "schema"),
    switch("a switch without a name", 'name = "tor1"\n', "", "name"),
    switch("a name with a slash", '"tor1"', '"a/b"', "name"),
    switch("an address of letters", '"10.0.0.253"', '"tor1"', "address"),
    switch("an address for all", '"10.0.0.253"', '"255.255.255.255"', "address"),
    switch("an address of a loop", '"10.0.0.253"', '"127.0.0.1"', "address|127"),
    switch("an address of groups", '"10.0.0.253"', '"224.0.0.1"', "address"),
    switch("tier 0", "tier = 1", "tier = 0", "tier"),
    switch("tier 300", "tier = 1", "tier = 300", "tier"),
    switch("a secret of nowhere", '"site.secret"', '"nowhere.secret"', "nowhere.secret"),
    switch("a secret in a folder", '"site.secret"', '"."', "secret|folder|directory"),
    switch("a secret without an end", '"site.secret"', '"/dev/zero"', "/dev/zero|secret"),
    switch("a mac of a group", "tier = 1", 'tier = 1\nmac = "01:00:5e:00:00:01"', "mac"),
    switch("a mac of letters", "tier = 1", 'tier = 1\nmac = "zz"', "mac"),
    switch("a back-end of nobody", "tier = 1", 'tier = 1\nbackend = "dpdk"', "backend|dpdk"),
    switch("a spin of hours", "tier = 1", 'tier = 1\nspin = "2h"', "spin"),
    switch("ageing of 0", "tier = 1", 'tier = 1\nageing = "0s"', "ageing"),
    switch("metrics without a port", "tier = 1", 'tier = 1\nmetrics = "127.0.0.1"', "metrics"),
    switch("no ports", '[[ports]]\ninterface = "nosuch0"\n', "", "ports"),
    switch("a port twice", "[[ports]]", '[[ports]]\ninterface = "nosuch0"\n[[ports]]',
           "nosuch0"),
    switch("a port of no name", '"nosuch0"', '""', "interface"),
    switch("a port of a long name", '"nosuch0"', '"a-name-of-more-than-15"', "interface"),
    switch("a port that is not there", "tier = 1", "tier = 1 ", "nosuch0"),
    switch("a port to itself", '"nosuch0"', '"lo"', "lo"),
    switch("a loss beyond 1", "[[ports]]", "[faults]\nloss = 1.5\n[[ports]]", "loss"),
    Case("a file of a switch that is not there", ("raddle-switch", "--config", "tor9.toml"),
         "tor9.toml"),
    Case("a file of a switch without an end", ("raddle-switch", "--config", "/dev/zero"),
         "/dev/zero"),
    Case("no file of a switch", ("raddle-switch",), "--config"),
    Case("the status of nobody", ("raddle-switch", "status", "--name", "nosuch"), "nosuch",
         status=1),
    Case("a key of job minus one", ("raddle-switch", "job-key", "--secret-file", "site.secret",
         "--", "-1"), "-1", {"site.secret": SECRET}),
    Case("no peer", ("raddle-perf", "run"), "--peer"),
    Case("a rate of nothing", ("raddle-perf", "run", "--peer", "127.0.0.1", "--rates", "fast"),
         "rates"),
    Case("messages of nothing", ("raddle-perf", "run", "--peer", "127.0.0.1", "--size", "0B"),
         "size"),
    Case("a policy of nobody", ("raddle-perf", "run", "--peer", "127.0.0.1", "--policy", "best"),
         "best"),
    Case("a rail of nobody", ("raddle-perf", "run", "--peer", "127.0.0.1", "--rails", "nosuch0"),
         "nosuch0"),
    Case("a time without a unit", ("raddle-perf", "run", "--peer", "127.0.0.1", "--time", "5"),
         "time"),
]  # fmt: skip

CASES = [
    *FABRICS, *TRAFFICS, *SIMULATIONS, *TEXTS, *ROUTE_CASES, *TRACES, *FLAGS, *SWITCHES,
]  # fmt: skip


@pytest.fixture(autouse=True)
def no_hang() -> Iterator[None]:
    """End the test session, with a traceback, where a case does not end."""
    faulthandler.dump_traceback_later(SECONDS, exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()


def lay(folder: Path, files: Mapping[str, Content]) -> None:
    """Write the files of a case; a FIFO and a link to itself are told by their contents."""
    for name, content in files.items():
        file = folder / name
        if content == "a FIFO":
            os.mkfifo(file)
        elif content == "a link to itself":
            file.symlink_to(file.name)
        else:
            file.write_bytes(content if isinstance(content, bytes) else content.encode())
            file.chmod(0o600)


def run_here(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    """Run raddle's command line in this process: exit status, stdout and stderr."""
    from raddle.cli.app import app

    try:
        app(list(words), prog_name="raddle")
    except SystemExit as leaving:
        status = leaving.code
    else:
        status = 0
    said = capsys.readouterr()
    return status if isinstance(status, int) else int(status is not None), said.out, said.err


def run_program(words: tuple[str, ...], folder: Path) -> tuple[int, str, str]:
    """Run another program of raddle: exit status, stdout and stderr."""
    command = [str(BIN / words[0]), *words[1:]]
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False, timeout=SECONDS
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name.replace(" ", "-"))
def test_a_broken_input_gives_a_one_screen_error(
    case: Case,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    lay(tmp_path, case.files)
    before = sorted(tmp_path.iterdir())
    monkeypatch.chdir(tmp_path)
    for name, value in case.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("COLUMNS", str(SCREEN_COLUMNS))
    program = case.words[0].startswith("raddle-")
    status, out, err = (
        run_program(case.words, tmp_path) if program else run_here(case.words, capsys)
    )
    assert status == case.status, f"exit status {status}\n{out}{err}"
    assert out == ""
    lines = sum(max(1, -(-len(line) // SCREEN_COLUMNS)) for line in err.splitlines())
    assert 1 <= lines <= SCREEN_LINES, err
    for word in ("panicked", "Traceback", "RUST_BACKTRACE", "PanicException", "\x1b", "usize"):
        assert word not in err, err
    assert not re.search(r"\b[fui](8|16|32|64)\b", err), f"a type of the code:\n{err}"
    things = (
        "byte|character|flow|group|host|item|job|line|link|member|message|node|port|rank|switche"
    )
    assert not re.search(rf"(?<![\w.-])1 ({things})s\b", err), f"one thing in the plural:\n{err}"
    assert re.search(case.says, err), f"does not say {case.says}:\n{err}"
    assert sorted(tmp_path.iterdir()) == before, "something was written"


def test_there_are_two_hundred_cases_of_different_names() -> None:
    assert len(CASES) >= 200
    assert len({case.name for case in CASES}) == len(CASES)
