"""`raddle view`: the explorer in a browser."""

import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from raddle import services
from raddle.cli.options import whole
from raddle.cli.talk import guarded

__all__ = ["view"]


@guarded
def view(
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="DIR",
            help="A results folder of raddle run or raddle route.",
            show_default=False,
        ),
    ],
    other: Annotated[
        Path | None,
        typer.Argument(
            metavar="OTHER", help="A second one, to be compared with.", show_default="none"
        ),
    ] = None,
    port: Annotated[
        int, whole("--port", least=0, most=65535, help="Port of the page; 0 takes a free one.")
    ] = 0,
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Print the address and open no browser.")
    ] = False,
) -> None:
    """Look into results in a browser: fabric, flows, jobs, trees, until Ctrl-C."""
    folders = [folder] if other is None else [folder, other]
    with services.view.Explorer(folders, port) as server:
        print(f"{server.url}   (Ctrl-C ends it)", flush=True)
        if not no_browser:
            webbrowser.open(server.url)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print()
