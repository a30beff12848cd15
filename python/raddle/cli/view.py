"""`raddle view`: the explorer in a browser."""

import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from raddle import services
from raddle.cli.options import whole
from raddle.cli.talk import guarded

if TYPE_CHECKING:
    from raddle.services.view import Page

__all__ = ["NoBrowser", "Port", "serve", "view"]

Port = Annotated[
    int, whole("--port", least=0, most=65535, help="Port of the page; 0 takes a free one.")
]
NoBrowser = Annotated[
    bool, typer.Option("--no-browser", help="Print the address and open no browser.")
]


@guarded
def view(
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="DIR",
            help="A results folder of raddle run or raddle route, or a trace NAME.trace.parquet.",
            show_default=False,
        ),
    ],
    other: Annotated[
        Path | None,
        typer.Argument(
            metavar="OTHER", help="A second one, to be compared with.", show_default="none"
        ),
    ] = None,
    port: Port = 0,
    no_browser: NoBrowser = False,
) -> None:
    """Look into results or a trace in a browser: fabric, flows, jobs, trees, lanes of ranks."""
    folders = [folder] if other is None else [folder, other]
    serve(services.view.Explorer(folders, port), no_browser=no_browser)


def serve(page: "Page", *, no_browser: bool) -> None:
    """Serve a page until Ctrl-C, and open it in a browser unless that is not wanted."""
    with page as server:
        try:
            print(f"{server.url}   (Ctrl-C ends it)", flush=True)
            if not no_browser:
                webbrowser.open(server.url)
            server.serve_forever()
        except KeyboardInterrupt:
            print()
