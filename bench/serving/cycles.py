"""The clients of `bench/serve`: each asks, is asked for a tool, answers, and is told the reply; again and again.

    cycles.py PORT TOKEN --clients N --seconds S [--every S] [--bytes N] [SESSION...]

Each client has one connection. Without sessions every cycle is in a new one; with some, they are taken in turn. With `--every`,
all clients together begin a cycle that often, else as fast as they are answered. Prints what was seen as JSON: cycles, seconds,
the times of both halves in ms, the sessions, and this process's CPU in seconds.
"""

import argparse
import asyncio
import itertools
import json
import resource
import socket
import time

# What ends unmeasured: connections and caches are warm after it.
WARM_S = 1.0


class Client(asyncio.Protocol):
    """One connection, one request at a time."""

    def __init__(self, port, token):
        self.head = "POST %%s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %%d\r\n\r\n" % (port, token)
        self.seen, self.answered = b"", None

    def connection_made(self, transport):
        self.transport = transport
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def connection_lost(self, _):
        if self.answered and not self.answered.done():
            self.answered.set_exception(ConnectionError("the server closed the connection"))

    def data_received(self, data):
        self.seen += data
        end = self.seen.find(b"\r\n\r\n")
        if end < 0:
            return
        head = self.seen[:end].lower()
        length = int(head.split(b"content-length:", 1)[1].split(b"\r\n", 1)[0])
        if len(self.seen) < end + 4 + length:
            return
        body, self.seen = self.seen[end + 4:end + 4 + length], b""
        self.answered.set_result((int(head[9:12]), json.loads(body)))

    async def post(self, path, value):
        body = json.dumps(value)
        self.answered = asyncio.get_running_loop().create_future()
        self.transport.write((self.head % (path, len(body)) + body).encode())
        status, answer = await self.answered
        if status != 200:
            raise SystemExit(f"{path} was answered with {status}: {answer}")
        return answer

    async def cycle(self, conversation, content):
        """Both halves' times in ms, and the session."""
        ask = {"message": "photo"} | ({"conversation_id": conversation} if conversation else {})
        began = time.perf_counter()
        waits = await self.post("/api/chat", ask)
        asked = time.perf_counter()
        done = await self.post(f"/api/sessions/{waits['session_id']}/tool_result", {"content": content, "call_id": waits["call_id"]})
        told = time.perf_counter()
        if done["reply"] != "done":
            raise SystemExit(f"not what the model said: {done}")
        return (asked - began) * 1e3, (told - asked) * 1e3, done["conversation_id"]


async def run(args):
    loop = asyncio.get_running_loop()
    clients = [(await loop.create_connection(lambda: Client(args.port, args.token), "127.0.0.1", args.port))[1] for _ in range(args.clients)]
    sessions, content = itertools.cycle(args.sessions or [None]), "x" * args.bytes
    seen, first = [], time.perf_counter()
    measured = first + (0 if args.every else WARM_S)
    end, turns = measured + args.seconds, itertools.count()

    async def go_on(client):
        while (now := time.perf_counter()) < end:
            if args.every:
                # A moment of its own for each cycle, whatever the one before took.
                await asyncio.sleep(first + next(turns) * args.every - now)
            cycle = await client.cycle(next(sessions), content)
            if now >= measured:
                seen.append(cycle)

    await asyncio.gather(*(go_on(client) for client in clients))
    usage = resource.getrusage(resource.RUSAGE_SELF)
    chats, resumes, ids = zip(*seen)
    print(json.dumps({
        "cycles": len(seen), "seconds": time.perf_counter() - measured, "chat_ms": chats, "resume_ms": resumes,
        "sessions": sorted(set(ids)), "cpu_s": usage.ru_utime + usage.ru_stime,
    }))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("port", type=int)
    parser.add_argument("token")
    parser.add_argument("--clients", type=int, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--every", type=float)
    parser.add_argument("--bytes", type=int, default=1)
    parser.add_argument("sessions", nargs="*")
    asyncio.run(run(parser.parse_intermixed_args()))
