"""The experiment that `raddle init` writes: small, commented, and valid as it stands (a test)."""

__all__ = ["EXPERIMENT"]

EXPERIMENT = """\
# A raddle experiment. Run it with:  raddle run THIS-FILE
# Quantities need a unit ("100Gbps", "1us", "64KiB"); a key that raddle does not know is an error.
# `raddle schema` prints the JSON Schema of this file, for completion and checks in an editor.
schema = 1
name = "first-steps"

# The network: 4 leaves with 8 hosts each, 2 spines. Other kinds: dumbbell, fat-tree,
# k-ary-fat-tree, ... or a file of yours: file = "map.toml", format = "toml".
[fabric]
kind = "leaf-spine"
leaves = 4
spines = 2
hosts_per_leaf = 8
host_rate = "100Gbps"
fabric_rate = "100Gbps"
delay = "1us"               # propagation delay of each link

# The traffic: a fifth of the hosts make flows that are judged (long, short, Allreduce), the
# others make background flows. raddle simulates it with and without the background and scores
# how much worse the judged flows fare. Other generators: permutation, incast, all-to-all, ...
# or a file of yours: file = "flows.csv", format = "csv".
[traffic]
generator = "hpc-mix"
load_factor = 0.6           # amount of background traffic

[simulation]
schemes = ["none", "dctcp", "dcqcn", "timely", "hpcc", "pint"]
seeds = [1]                 # more seeds, e.g. [1, 2, 3], give 95 % intervals
buffer = "32MiB"            # shared buffer of each switch

# How ports share the buffer, where PFC pauses, and what is set aside for what still arrives.
# [switch.ingress]
# sharing = "dynamic"       # dynamic: alpha times what is free; static; complete
# alpha = 0.125
# headroom = "64KiB"        # default: what can arrive until a PAUSE takes effect

# Recorded beside flows, pauses and port counters.
# [record]
# paths = true              # every flow's hops: paths.parquet
# busiest = 8               # series of the 8 fullest ports; or of some: ports = ["s4:1"]

# Parameters of a scheme; what is left out has the default of its paper, scaled to this fabric.
# [schemes.hpcc]
# target_utilisation = 0.95
"""
