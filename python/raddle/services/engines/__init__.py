"""Engines: what simulates the runs of plans, on this machine or on others."""

from typing import TYPE_CHECKING

from raddle.lazy import attach

__all__ = ["choice", "dask", "threads", "work"]

if TYPE_CHECKING:
    from raddle.services.engines import choice, dask, threads, work
else:
    __getattr__, __dir__ = attach(__name__, modules=__all__)
