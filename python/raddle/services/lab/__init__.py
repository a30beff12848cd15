"""A virtual cluster on one Linux machine, for tests, benchmarks and newcomers.

Hosts and switches are namespaces (network, host name, IPC, mounts) joined by veth links. Nothing
but processes keeps them alive: whoever kills the processes of a lab removes its namespaces, links,
queueing disciplines, shared memory and BPF programs. All processes of a lab are in one control
group, so they are found again whatever has happened to the programs that started them.

- `topology`: names, addresses and links of a lab; no system call
- `cgroups`, `namespaces`, `network`, `processes`, `reach`: what the kernel does for us
- `switches`: the back-ends, a bridge or `raddle-switch`
- `state`: what is noted of a lab, and who may change it when
- `mpi`: `mpirun` inside; `verify`: a program plain and with an advice, in turns
- `calibrate`: what hosts cost here; `bench` measures, `predict` simulates the same
- `virtual`: the life of a lab; `live`: a lab at one moment, for its page
"""

from typing import TYPE_CHECKING

from raddle.lazy import attach

__all__ = [
    "Backend",
    "Lab",
    "LabSpec",
    "Mode",
    "Protocol",
    "Topology",
    "calibrate",
    "live",
    "mpi",
    "topology",
    "verify",
]

if TYPE_CHECKING:
    from raddle.services.lab import calibrate, live, mpi, topology, verify
    from raddle.services.lab.topology import Backend, LabSpec, Mode, Protocol, Topology
    from raddle.services.lab.virtual import Lab
else:
    __getattr__, __dir__ = attach(
        __name__,
        modules=("calibrate", "live", "mpi", "topology", "verify"),
        names={
            "Backend": "raddle.services.lab.topology",
            "Lab": "raddle.services.lab.virtual",
            "LabSpec": "raddle.services.lab.topology",
            "Mode": "raddle.services.lab.topology",
            "Protocol": "raddle.services.lab.topology",
            "Topology": "raddle.services.lab.topology",
        },
    )
