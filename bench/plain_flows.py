"""What else goes over rails, to compare with: plain TCP, the kernel's MPTCP, raw UDP.

`serve` receives on one host of a lab; `send` fills one or more rails for a while from another and
prints a line of JSON: bits per second of payload that arrived, and MPTCP's subflows.
"""

import argparse
import json
import socket
import struct
import sys
import time
from collections.abc import Callable
from threading import Event, Thread

TCP_PORT, MPTCP_PORT, CONTROL_PORT, UDP_PORT = 7651, 7652, 7653, 7654
DATAGRAM = 1472
"""Payload of a full Ethernet frame."""

TRAIN = 44
"""Datagrams for the kernel to cut from one call: 64 KiB at most."""

MESSAGE = 1 << 20
SOL_UDP, UDP_SEGMENT, UDP_GRO = 17, 103, 104
SO_RCVBUFFORCE = 33
ROOM = 8 << 20
SOL_MPTCP, MPTCP_INFO = 284, 1
QUIET_S = 0.2
"""Silence after which nothing more is on its way."""


def serve() -> None:
    """Receive what comes, until stopped."""
    threads = [
        Thread(target=streams, args=(TCP_PORT, socket.IPPROTO_TCP), daemon=True),
        Thread(target=streams, args=(MPTCP_PORT, socket.IPPROTO_MPTCP), daemon=True),
        Thread(target=datagrams, daemon=True),
    ]
    for thread in threads:
        thread.start()
    print("listening", file=sys.stderr, flush=True)
    for thread in threads:
        thread.join()


def streams(port: int, protocol: int) -> None:
    """Receive one connection after the other, and answer each with its bytes."""
    try:
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, protocol)
    except OSError as error:
        print(f"protocol {protocol}: {error}", file=sys.stderr, flush=True)
        return
    with listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("", port))
        listener.listen()
        room = bytearray(MESSAGE)
        while True:
            with listener.accept()[0] as stream:
                total = 0
                while count := stream.recv_into(room):
                    total += count
                stream.sendall(f"{total}\n".encode())


def datagrams() -> None:
    """Count datagrams of one client after the other, from its first line to its second."""
    with (
        socket.create_server(("", CONTROL_PORT)) as listener,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taker,
    ):
        taker.setsockopt(SOL_UDP, UDP_GRO, 1)
        taker.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, ROOM)
        taker.bind(("", UDP_PORT))
        taker.settimeout(QUIET_S)
        while True:
            with listener.accept()[0] as stream:
                lines, ended = stream.makefile(), Event()
                lines.readline()

                def wait(until: Callable[[], str] = lines.readline, end: Event = ended) -> None:
                    until()
                    end.set()

                stream.sendall(b"ready\n")
                Thread(target=wait, daemon=True).start()
                stream.sendall(f"{count_datagrams(taker, ended)}\n".encode())


def count_datagrams(taker: socket.socket, ended: Event) -> float:
    """Bits per second from the first datagram to the last."""
    room = bytearray(1 << 16)
    total, first, last = 0, 0.0, 0.0
    while True:
        try:
            count = taker.recv_into(room)
        except TimeoutError:
            if ended.is_set():
                return 8 * total / (last - first) if last > first else 0.0
            continue
        last = time.monotonic()
        if first:
            total += count
        else:
            # What came before the first is not known.
            first = last


def send_stream(host: str, port: int, protocol: int, seconds: float) -> dict[str, float]:
    """Send messages for a while; time counts until the other side has them."""
    message = bytes(MESSAGE)
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, protocol) as stream:
        stream.connect((host, port))
        begun = time.monotonic()
        while time.monotonic() - begun < seconds:
            stream.sendall(message)
        subflows = 1
        if protocol == socket.IPPROTO_MPTCP:
            # Its first byte counts those beside the first one.
            subflows += stream.getsockopt(SOL_MPTCP, MPTCP_INFO, 128)[0]
        stream.shutdown(socket.SHUT_WR)
        total = int(stream.makefile().readline())
        return {"bps": 8 * total / (time.monotonic() - begun), "subflows": subflows}


def send_datagrams(host: str, to: list[str], seconds: float) -> dict[str, float]:
    """Fill one rail for each address with datagrams, as fast as its interface takes them."""

    def fill(address: str) -> None:
        message = [bytes(DATAGRAM * TRAIN)]
        how = [(SOL_UDP, UDP_SEGMENT, struct.pack("=H", DATAGRAM))]
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as rail:
            rail.connect((address, UDP_PORT))
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                rail.sendmsg(message, how)

    with socket.create_connection((host, CONTROL_PORT)) as stream:
        lines = stream.makefile()
        stream.sendall(b"begin\n")
        lines.readline()
        threads = [Thread(target=fill, args=(address,)) for address in to]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        stream.sendall(b"end\n")
        return {"bps": float(lines.readline())}


def main() -> None:
    """Serve, or send and print what came."""
    parser = argparse.ArgumentParser(
        prog="python3 -m bench.plain_flows", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("what", choices=("serve", "tcp", "mptcp", "udp"))
    parser.add_argument("--host", default="h2", help="where `serve` runs (%(default)s)")
    parser.add_argument("--to", default="", help="for udp: its addresses, one for each rail")
    parser.add_argument("--seconds", type=float, default=1.5, help="how long (%(default)s)")
    options = parser.parse_args()
    if options.what == "serve":
        serve()
        return
    if options.what == "udp":
        found = send_datagrams(options.host, options.to.split(","), options.seconds)
    elif options.what == "mptcp":
        protocol = socket.IPPROTO_MPTCP
        found = send_stream(options.host, MPTCP_PORT, protocol, options.seconds)
    else:
        found = send_stream(options.host, TCP_PORT, socket.IPPROTO_TCP, options.seconds)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
