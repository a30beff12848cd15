"""The command line. `main` is what `raddle` runs; everything else is imported when it is needed."""

__all__ = ["main"]


def main() -> None:
    """Run the command line and leave with its exit code (0, 1, 2, 70 or 130)."""
    from raddle.cli.app import app

    app(prog_name="raddle")
