"""The one way in which imports wait: names of a package that are imported on first use.

`raddle --help` needs neither numpy nor Arrow. So the packages of services, statistics, results and
pages import their modules when one is asked for (PEP 562), and every other import of Raddle stands
at the top of its file. Whoever must not load a module at once asks its package for it::

    from raddle import services

    services.run.plan_file(file)  # loads raddle.services.run here
"""

import importlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any

__all__ = ["attach"]


def attach(
    package: str, *, modules: Iterable[str] = (), names: Mapping[str, str] | None = None
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Make `__getattr__` and `__dir__` of a package.

    Parameters
    ----------
    package
        Its name.
    modules
        Its modules that are imported when they are asked for.
    names
        What else it exports, and the module that each name is defined in.
    """
    homes = dict.fromkeys(modules) | dict(names or {})

    def load(name: str) -> Any:  # noqa: ANN401 - whatever the name stands for
        if name not in homes:
            msg = f"module {package!r} has no attribute {name!r}"
            raise AttributeError(msg)
        home = homes[name]
        if home is None:
            return importlib.import_module(f"{package}.{name}")
        return getattr(importlib.import_module(home), name)

    return load, lambda: sorted(homes)
