"""What commands say: data to stdout, talk to stderr, failures as exit codes, decided in one place.

Exit codes: 0 done; 1 the answer is no; 2 bad usage or input; 70 a bug of ours; 130 interrupted.
"""

import contextlib
import functools
import json
import os
import re
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, ParamSpec

import typer
import typer.core

from raddle import services
from raddle.errors import RaddleError, RunFailed
from raddle.text import suggest

if TYPE_CHECKING:
    from typer._click import Context

__all__ = [
    "EXIT_BUG",
    "EXIT_INTERRUPTED",
    "EXIT_NO",
    "EXIT_USAGE",
    "Commands",
    "answer_no",
    "examples",
    "guarded",
    "guarded_launcher",
    "print_json",
    "print_table",
    "progress_wanted",
    "say",
    "say_one_thread",
    "system_words",
    "terminate_like_interrupt",
]

EXIT_NO, EXIT_USAGE, EXIT_BUG, EXIT_INTERRUPTED = 1, 2, 70, 130

P = ParamSpec("P")


def say(text: str = "") -> None:
    """Talk to the user (stderr)."""
    print(text, file=sys.stderr, flush=True)


def say_one_thread(threads: int | None, reasons: Sequence[str | None]) -> None:
    """Say where the `threads` that were asked for are of no use, and why; None: they are."""
    if threads is None or threads == 1:
        return
    who = "some runs keep" if None in reasons else "each run keeps"
    for why in dict.fromkeys(reasons):
        if why is not None:
            say(f"note: {who} to one thread, whatever --threads says: {why}")


def print_json(value: Mapping[str, Any]) -> None:
    """One JSON document on one line of stdout, with `schema` first."""
    document = {"schema": 1, **value}
    print(json.dumps(document, ensure_ascii=False, allow_nan=False), flush=True)


def print_table(header: Sequence[str], rows: Sequence[Sequence[str]], *, left: int = 1) -> None:
    """A plain table on stdout: the first `left` columns to the left, figures to the right."""
    if not rows:
        return
    lines = [header, *rows]
    widths = [max(len(line[i]) for line in lines) for i in range(len(header))]
    for line in lines:
        cells = [
            cell.ljust(width) if i < left else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(line, widths, strict=True))
        ]
        print("  ".join(cells).rstrip())
    sys.stdout.flush()


def examples(*lines: str) -> str:
    """What stands below the help of a command."""
    return "\n\n".join(["[bold]Examples[/bold]", *lines])


def progress_wanted(*, quiet: bool) -> bool:
    """A progress bar is for people who watch: on a terminal, and not switched off."""
    return not quiet and sys.stderr.isatty() and not os.environ.get("RADDLE_NO_PROGRESS")


def terminate_like_interrupt() -> None:
    """Batch systems end jobs with SIGTERM: end as after Ctrl-C, with what is done kept in order."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, signal.default_int_handler)


def answer_no() -> NoReturn:
    """End because the answer to the question asked is no."""
    raise typer.Exit(EXIT_NO)


class Commands(typer.core.TyperGroup):
    """A group of commands whose usage errors name the wrong value, and the nearest right one.

    The help lists them in the order of `order`, where there is one.
    """

    order: tuple[str, ...] = ()

    def list_commands(self, ctx: "Context") -> list[str]:
        """Name the commands."""
        return [*self.order] or super().list_commands(ctx)

    def invoke(self, ctx: "Context") -> object:
        """Run the command of `ctx`."""
        try:
            return super().invoke(ctx)
        except typer.BadParameter as error:
            error.message = _parameter_words(error)
            raise


def _parameter_words(error: typer.BadParameter) -> str:
    """What is wrong with a parameter, from what typer says of it.

    Examples
    --------
    >>> _parameter_words(typer.BadParameter("Value error, 'xpd' is not one of 'off', 'xdp'."))
    '`xpd`: did you mean `xdp`? possible: off, xdp'
    """
    said = error.message.removeprefix("Value error, ")
    if choice := re.fullmatch(r"(['\"])(.*)\1 is not one of ('.*')\.", said):
        _, word, listed = choice.groups()
        known = re.findall(r"'([^']*)'", listed)
        return f"`{word}`: {suggest(word, known)}"
    # What pydantic found about a number does not repeat it.
    details: list[dict[str, Any]] = getattr(error.__cause__, "errors", list)()
    if not details:
        return said
    found = details[0]
    limits = found.get("ctx", {})
    words = {
        "greater_than_equal": f"it must be at least {limits.get('ge')}",
        "less_than_equal": f"it must be at most {limits.get('le')}",
        "int_parsing": "it must be a whole number",
        "int_parsing_size": "it must be a smaller whole number",
        "int_from_float": "it must be a whole number",
        "float_parsing": "it must be a number",
    }
    return f"`{found['input']}`: {words.get(found['type'], said)}"


def guarded(command: Callable[P, None]) -> Callable[P, None]:
    """Turn what a command raises into one message and an exit code.

    With `--json` the message also goes to stdout as `{"schema": 1, "error": ...}`.
    """

    @functools.wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        _warn_of_unknown_variables()
        launch(*args, **kwargs)

    launch = guarded_launcher(command)
    return run


def guarded_launcher(command: Callable[P, None]) -> Callable[P, None]:
    """As `guarded`, for commands that start an MPI program.

    What is wrong with RADDLE_* variables is said by libraddle_mpi.so under the program, and by
    nobody where it is not wanted there.
    """

    @functools.wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        as_json = bool(kwargs.get("as_json"))
        try:
            command(*args, **kwargs)
            sys.stdout.flush()
        except RunFailed as error:
            _fail(str(error), EXIT_BUG, as_json=as_json)
        except RaddleError as error:
            _fail(str(error), EXIT_USAGE, as_json=as_json)
        except BrokenPipeError:
            raise typer.Exit(0) from None  # the reader (head, less) has what it wanted
        except KeyboardInterrupt:
            _fail("interrupted", EXIT_INTERRUPTED, as_json=as_json)
        except ImportError as error:
            _fail(_import_words(error), EXIT_BUG, as_json=as_json)
        except OSError as error:
            _fail(system_words(error), EXIT_USAGE, as_json=as_json)
        except Exception as error:
            if type(error).__module__.startswith("typer"):
                raise  # usage errors and exits are typer's to show
            say(traceback.format_exc().rstrip())
            _fail(
                f"internal error: {error}\n  hint: this is a bug in raddle; please report it with "
                "the lines above and the experiment",
                EXIT_BUG,
                as_json=as_json,
            )

    return run


def system_words(error: OSError) -> str:
    """What the system refused, and on which file.

    Examples
    --------
    >>> system_words(OSError(28, "No space left on device", "out/flows.parquet"))
    'out/flows.parquet: No space left on device'
    """
    name = f"{error.filename}: " if error.filename else ""
    return f"{name}{error.strerror or error}"


def _fail(message: str, code: int, *, as_json: bool) -> NoReturn:
    if as_json:
        with contextlib.suppress(OSError):  # standard output is what failed
            print_json({"error": {"message": message, "exit_code": code}})
    prefix = "" if message.startswith("error") or message == "interrupted" else "error: "
    if prefix and sys.stderr.isatty() and not os.environ.get("NO_COLOR"):
        prefix = "\033[1;31merror:\033[0m "
    say(prefix + message)
    raise typer.Exit(code)


def _import_words(error: ImportError) -> str:
    if error.name == "raddle._core" or "_core" in str(error):
        return (
            "the compiled part of raddle (raddle._core) is missing or broken\n"
            f"  cause: {error}\n"
            "  hint: `make build` in a checkout, or `pip install --force-reinstall raddle`"
        )
    return f"{error}\n  hint: `raddle doctor` says what is missing and how to install it"


def _warn_of_unknown_variables() -> None:
    mine = sorted(name for name in os.environ if name.startswith("RADDLE_"))
    if not mine:
        return
    try:
        known = {variable.name for variable in services.settings.variables()}
    except ImportError:
        return  # said by the command itself, if it needs the compiled part
    for name in mine:
        if name not in known:
            say(f"warning: environment variable {name} is not known (`raddle config` lists them)")
