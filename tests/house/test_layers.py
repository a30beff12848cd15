"""The layers of the Python package: imports point down, make no circle, and stand at the top."""

import ast
import functools
import subprocess
import sys
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2] / "python"

LAYERS = (
    ("raddle.__main__",),
    ("raddle.cli",),
    ("raddle.api",),
    ("raddle.services",),
    ("raddle.report",),
    ("raddle.statistics",),
    ("raddle.results",),
    ("raddle.core",),
    ("raddle.plan",),
    ("raddle.files",),
    ("raddle.errors", "raddle.lazy", "raddle.machine", "raddle.text", "raddle.version"),
)
"""Packages and modules from the top to the bottom: each may import what stands below it."""

CORE = "raddle._core"
CORE_USER = "raddle.core"
"""The only package that calls the compiled core; `raddle doctor` tries whether it loads."""

LATE = {("raddle.services.doctor", CORE), ("raddle.report.html", "jinja2")}
LATE |= {("raddle.report.html", "plotly.offline"), ("raddle.services.ranks", "mpi4py")}
"""Imports inside functions: what may be missing, and what few pages need."""


@functools.cache
def modules() -> dict[str, Path]:
    """Every module of the package."""
    found = {}
    for file in sorted(ROOT.glob("raddle/**/*.py")):
        name = ".".join(file.relative_to(ROOT).with_suffix("").parts)
        found[name.removesuffix(".__init__")] = file
    return found


def imports(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Each import as (module, name); the name is empty for `import module`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((name.name, "") for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from ((node.module or "", name.name) for name in node.names)


def uses(file: Path, known: dict[str, Path]) -> set[str]:
    """The modules of the package that a module imports, also for its types."""
    names = set()
    for module, name in imports(ast.parse(file.read_text())):
        inside = f"{module}.{name}"
        if inside in known or inside == CORE:
            names.add(inside)
        elif module in known or module == CORE:
            names.add(module)
    return names


def below(module: str, names: tuple[str, ...]) -> bool:
    """Whether a module is one of these or inside one."""
    return any(module == name or module.startswith(f"{name}.") for name in names)


def layer(module: str) -> int:
    """The place of a module's layer, counted from the top."""
    return next(place for place, names in enumerate(LAYERS) if below(module, names))


def lazy(module: str, file: Path) -> bool:
    """Whether a package only says where its names are: they are imported on first use."""
    return file.name == "__init__.py" and "attach(" in file.read_text()


@functools.cache
def graph() -> dict[str, set[str]]:
    """Who imports whom, packages that import on first use left out."""
    known = modules()
    return {
        module: uses(file, known) - {module}
        for module, file in known.items()
        if not lazy(module, file)
    }


def test_imports_point_down() -> None:
    wrong = []
    for module, found in graph().items():
        for used in found if module != "raddle" else ():
            if used == CORE:
                if not below(module, (CORE_USER,)) and (module, CORE) not in LATE:
                    wrong.append(f"{module} calls the compiled core")
            elif layer(used) < layer(module):
                wrong.append(f"{module} imports {used}, which is above it")
    assert not wrong, "\n".join(wrong)


def test_modules_make_no_circle() -> None:
    known = graph()
    inside = {module: {used for used in found if used in known} for module, found in known.items()}
    try:
        TopologicalSorter(inside).prepare()
    except CycleError as error:
        pytest.fail(f"modules import each other: {' -> '.join(error.args[1])}")


def test_imports_stand_at_the_top() -> None:
    late = set()
    for module, file in modules().items():
        for function in ast.walk(ast.parse(file.read_text())):
            if isinstance(function, ast.FunctionDef):
                found = {(f"{m}.{n}" if m == "raddle" else m) for m, n in imports(function)}
                late |= {(module, name) for name in found}
    assert late == LATE


def test_help_loads_neither_tables_nor_pictures_nor_the_core() -> None:
    script = (
        "import sys\n"
        "sys.argv = ['raddle', '--help']\n"
        "from raddle.cli import main\n"
        "try:\n"
        "    main()\n"
        "finally:\n"
        "    print(*sys.modules, file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    heavy = {"matplotlib", "numpy", "pandas", "plotly", "polars", "pyarrow", CORE}
    assert not heavy & set(done.stderr.split())
