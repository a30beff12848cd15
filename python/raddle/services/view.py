"""The servers of `raddle view` and `raddle lab view`: the explorer, and what it asks for.

That is the Parquet files of results folders, or the counters of a lab. A server is bound to this
machine's loopback and hands out nothing but the page and these. A request that names another host
is refused, so that a page elsewhere whose name was made to point here reads nothing.
"""

import json
import re
import sys
from collections.abc import Sequence
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from raddle.errors import LabError, ResultsError
from raddle.report.explorer import explorer_page, files_of
from raddle.services.lab import Lab, live

__all__ = ["Explorer", "LiveLab", "Page"]

LOOPBACK = "127.0.0.1"
CHUNK = 1 << 20
RANGE = re.compile(r"bytes=(\d+)-(\d*)")


class Page(ThreadingHTTPServer):
    """Serves the explorer's page, and what it asks for, until it is shut down.

    Raises
    ------
    ResultsError
        The port is taken; `port` 0 takes a free one.
    """

    daemon_threads = True

    def __init__(self, port: int) -> None:
        self.page = explorer_page().encode()
        try:
            super().__init__((LOOPBACK, port), _Handler)
        except OSError as error:
            msg = f"port {port} cannot be used: {error.strerror}\n  hint: --port 0 takes a free one"
            raise ResultsError(msg) from error

    @property
    def url(self) -> str:
        """Where the page is."""
        return f"http://{LOOPBACK}:{self.server_port}/"

    def told(self, path: str) -> object:
        """What is below `/api/`, to be sent as JSON; None if nothing is there."""
        raise NotImplementedError

    def file(self, path: str) -> Path | None:
        """The table below `/api/`; None if there is none of that name."""
        del path
        return None


class Explorer(Page):
    """Serves results folders, or traces.

    Raises
    ------
    ResultsError
        A place is no trace and holds neither results of `raddle run` nor of `raddle route`, traces
        and folders stand side by side, or the port is taken.
    """

    def __init__(self, places: Sequence[Path], port: int = 0) -> None:
        self.places = [place.resolve() for place in places]
        self.files = [files_of(place) for place in self.places]
        if len({place.is_dir() for place in self.places}) > 1:
            msg = "a trace and a results folder cannot stand side by side"
            raise ResultsError(msg)
        super().__init__(port)

    def told(self, path: str) -> object:
        """The places and their tables."""
        if path != "folders":
            return None
        return {
            "folders": [
                {
                    "name": place.name,
                    "files": {name: file.stat().st_size for name, file in files.items()},
                }
                for place, files in zip(self.places, self.files, strict=True)
            ]
        }

    def file(self, path: str) -> Path | None:
        """A table of one of the places: `files/0/flows.parquet`."""
        match path.split("/"):
            case ["files", place, name] if place.isdecimal() and int(place) < len(self.files):
                return self.files[int(place)].get(name)
        return None


class LiveLab(Page):
    """Serves a lab that is up: what is counted there, anew for each question.

    Raises
    ------
    LabError
        There is no such lab.
    ResultsError
        The port is taken.
    """

    def __init__(self, name: str, port: int = 0) -> None:
        self.lab = Lab.find(name).name
        super().__init__(port)

    def told(self, path: str) -> object:
        """The name of the lab, and what it is at this moment."""
        if path == "folders":
            return {"folders": [], "lab": self.lab}
        if path != "lab":
            return None
        try:
            return live.snapshot(self.lab)
        except LabError as error:
            return {"down": str(error)}


class _Handler(BaseHTTPRequestHandler):
    server: Page
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """Answer a request."""
        named = self.headers.get("Host", "")
        if named not in {f"{host}:{self.server.server_port}" for host in (LOOPBACK, "localhost")}:
            self.send_error(HTTPStatus.FORBIDDEN)
            return
        path = self.path.partition("?")[0]
        if path == "/":
            self._answer(self.server.page, "text/html; charset=utf-8")
            return
        asked = path.removeprefix("/api/")
        if asked == path:
            self.send_error(HTTPStatus.NOT_FOUND)
        elif (told := self.server.told(asked)) is not None:
            self._answer(json.dumps(told).encode(), "application/json")
        elif (file := self.server.file(asked)) is not None:
            self._file(file)
        else:
            self.send_error(HTTPStatus.NOT_FOUND)

    def _file(self, path: Path) -> None:
        try:
            with path.open("rb") as file:
                length = file.seek(0, 2)
                asked = self._range(length)
                if asked is None:
                    self.send_error(HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE)
                    return
                start, end = asked
                partial = "Range" in self.headers
                self.send_response(HTTPStatus.PARTIAL_CONTENT if partial else HTTPStatus.OK)
                if partial:
                    self.send_header("Content-Range", f"bytes {start}-{end - 1}/{length}")
                self._head("application/vnd.apache.parquet", end - start)
                file.seek(start)
                while start < end and (data := file.read(min(CHUNK, end - start))):
                    self.wfile.write(data)
                    start += len(data)
        except OSError as error:
            # The browser has gone, or the folder has: nobody is left to answer.
            print(f"{path.name}: {error}", file=sys.stderr)
            self.close_connection = True

    def _range(self, length: int) -> tuple[int, int] | None:
        asked = self.headers.get("Range")
        if asked is None:
            return 0, length
        told = RANGE.fullmatch(asked)
        if told is None or int(told[1]) >= length:
            return None
        end = int(told[2]) + 1 if told[2] else length
        return (int(told[1]), min(end, length)) if end > int(told[1]) else None

    def _answer(self, data: bytes, kind: str) -> None:
        self.send_response(HTTPStatus.OK)
        self._head(kind, len(data))
        self.wfile.write(data)

    def _head(self, kind: str, length: int) -> None:
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(length))
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing of requests that went well."""
