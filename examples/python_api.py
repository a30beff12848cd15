"""Run an experiment from Python and look at the results as data frames.

python examples/python_api.py
"""

import tempfile

import pyarrow.compute as pc

import raddle

EXPERIMENT = {
    "schema": 1,
    "fabric": {"kind": "leaf-spine", "leaves": 4, "spines": 2, "hosts_per_leaf": 4},
    "traffic": {"generator": "incast", "sources": 12, "target": 0, "size": "64KiB"},
    "simulation": {"schemes": ["none", "dctcp", "hpcc"], "seeds": [1]},
}


def main() -> None:
    """Print the median flow completion time of each scheme."""
    with tempfile.TemporaryDirectory() as folder:
        results = raddle.run(EXPERIMENT, folder)
        for scheme in results.schemes:
            flows = results.flows.filter(pc.field("scheme") == scheme)
            median_us = pc.quantile(flows["fct_ps"], 0.5)[0].as_py() / 1e6
            print(f"{scheme:<6} {flows.num_rows} flows, median {median_us:.1f} us")


if __name__ == "__main__":
    main()
