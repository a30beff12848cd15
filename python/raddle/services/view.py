"""The server of `raddle view`: the explorer, and the Parquet files of the folders that it shows.

It is bound to this machine's loopback and hands out nothing but the page and those tables. A
request that names another host is refused, so that a page elsewhere whose name was made to point
here reads nothing.
"""

import json
import re
import sys
from collections.abc import Sequence
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from raddle.errors import ResultsError
from raddle.report.explorer import explorer_page, files_of

__all__ = ["Explorer"]

LOOPBACK = "127.0.0.1"
CHUNK = 1 << 20
RANGE = re.compile(r"bytes=(\d+)-(\d*)")


class Explorer(ThreadingHTTPServer):
    """Serves folders until it is shut down; `port` 0 takes a free one.

    Raises
    ------
    ResultsError
        A folder holds neither results of `raddle run` nor of `raddle route`, or the port is taken.
    """

    daemon_threads = True

    def __init__(self, folders: Sequence[Path], port: int = 0) -> None:
        self.folders = [folder.resolve() for folder in folders]
        self.files = [files_of(folder) for folder in self.folders]
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

    def listing(self) -> bytes:
        """The folders and their tables, as the page reads them."""
        told = [
            {"name": folder.name, "files": dict(files)}
            for folder, files in zip(self.folders, self.files, strict=True)
        ]
        return json.dumps({"folders": told}).encode()


class _Handler(BaseHTTPRequestHandler):
    server: Explorer
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
        elif path == "/api/folders":
            self._answer(self.server.listing(), "application/json")
        else:
            self._file(path)

    def _file(self, path: str) -> None:
        match path.split("/"):
            case ["", "api", "files", place, name] if place.isdecimal():
                number = int(place)
            case _:
                self.send_error(HTTPStatus.NOT_FOUND)
                return
        if number >= len(self.server.folders) or name not in self.server.files[number]:
            self.send_error(HTTPStatus.NOT_FOUND)
            return
        try:
            with (self.server.folders[number] / name).open("rb") as file:
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
            print(f"{name}: {error}", file=sys.stderr)
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
