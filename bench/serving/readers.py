"""The readers of `bench/serve`: event streams of sessions, each on a connection of its own, and some that are never read.

    readers.py PORT TOKEN --readers N --stuck N SESSION...

Prints a line when all are connected, `{}`. Then it obeys lines of its input: `begin` forgets what was seen so far; `count` prints how many pieces
that were (`pieces`); `tell` prints
as JSON how many events came, their delays in ms (from the time in the event, when it was about to be written to the ledger, to
the moment it was read here: `delay_p50`, `delay_p99`), how many readers were cut off, and this process's CPU in seconds. It ends
with its input.

It is one loop over `epoll` that only keeps what it reads, and takes it apart when it is asked: what readers in a slow language
cost would be a part of the delay otherwise.
"""

import argparse
import json
import os
import re
import resource
import select
import socket
import sys
import time

ASK = "GET /api/sessions/%s/events HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nAuthorization: Bearer %s\r\nAccept: text/event-stream\r\n\r\n"
# What the kernel keeps for a reader that never reads: as little as it can.
STUCK_BYTES = 4096
READ_BYTES = 1 << 18
TIME = re.compile(rb'"time":(\d{13})')


def follow(args, number, stuck):
    """A connection that was answered with the beginning of a stream."""
    connection = socket.socket()
    if stuck:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, STUCK_BYTES)
    connection.connect(("127.0.0.1", args.port))
    session = args.sessions[number % len(args.sessions)]
    connection.sendall((ASK % (session, args.port, args.token)).encode())
    began = connection.recv(256)
    if not began.startswith(b"HTTP/1.1 200"):
        raise SystemExit(f"no stream: {began!r}")
    return connection


def told(pieces):
    """The delays of all events in what was read, in ms, sorted."""
    delays = []
    for fd_pieces in pieces.values():
        rest = b""
        for at, data in fd_pieces:
            # An event that came in two pieces was there with the second.
            text = rest + data
            whole = text.rfind(b"\n\n") + 2
            delays += [at * 1e3 - int(time_ms) for time_ms in TIME.findall(text[:whole] if whole > 1 else b"")]
            rest = text[whole:] if whole > 1 else text
    return sorted(delays)


def main(args):
    readers = {}
    for number in range(args.readers):
        connection = follow(args, number, stuck=False)
        connection.setblocking(False)
        readers[connection.fileno()] = connection
    stuck = [follow(args, number, stuck=True) for number in range(args.stuck)]
    polled = select.epoll()
    for fd in readers:
        polled.register(fd, select.EPOLLIN)
    polled.register(0, select.EPOLLIN)
    print("{}", flush=True)
    pieces, cut = {fd: [] for fd in readers}, 0
    while True:
        for fd, _ in polled.poll():
            if fd == 0:
                order = os.read(0, 64)
                if not order:
                    return
                if order.startswith(b"begin"):
                    pieces = {fd: [] for fd in readers}
                    print("{}", flush=True)
                    continue
                if order.startswith(b"count"):
                    print(json.dumps({"pieces": sum(map(len, pieces.values()))}), flush=True)
                    continue
                delays = told(pieces)
                usage = resource.getrusage(resource.RUSAGE_SELF)
                share = lambda part: delays[int(len(delays) * part)] if delays else 0
                print(json.dumps({"events": len(delays), "delay_p50": share(0.5), "delay_p99": share(0.99), "cut": cut,
                                  "stuck": len(stuck), "cpu_s": usage.ru_utime + usage.ru_stime}), flush=True)
                continue
            data = readers[fd].recv(READ_BYTES)
            if data:
                pieces[fd].append((time.time(), data))
            else:
                polled.unregister(fd)
                cut += 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("port", type=int)
    parser.add_argument("token")
    parser.add_argument("--readers", type=int, required=True)
    parser.add_argument("--stuck", type=int, required=True)
    parser.add_argument("sessions", nargs="+")
    main(parser.parse_intermixed_args())
