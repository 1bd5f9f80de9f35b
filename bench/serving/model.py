"""The model of `bench/serve`: a process of its own that answers at once, in the chat completions format.

It asks for a tool of the client's when a person has spoken, and ends the turn when a tool has. Each answer is rendered before the
first request, so that next to nothing of the machine goes to it. It prints its base URL and runs until it is killed.
"""

import asyncio
import json
import socket

MODELS = b'{"data":[{"id":"fake"}]}'
JSON = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
ROLE, TOOL = b'"role":"', b'"role":"tool"'


def stream(*chunks):
    """A whole answer that streams these deltas."""
    said = "".join(f"data: {json.dumps({'choices': [chunk]})}\n\n" for chunk in chunks) + "data: [DONE]\n\n"
    head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: %d\r\n\r\n"
    return (head % len(said) + said).encode()


CALL = stream(
    {"index": 0, "delta": {"tool_calls": [{"index": 0, "id": "c0", "type": "function", "function": {"name": "pick_photo", "arguments": '{"album":"sea"}'}}]}},
    {"index": 0, "delta": {}, "finish_reason": "tool_calls"},
)
TEXT = stream({"index": 0, "delta": {"content": "done"}}, {"index": 0, "delta": {}, "finish_reason": "stop"})


class Connection(asyncio.Protocol):
    def connection_made(self, transport):
        self.transport, self.seen = transport, b""
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def data_received(self, data):
        self.seen += data
        while (end := self.seen.find(b"\r\n\r\n")) >= 0:
            head = self.seen[:end].lower()
            at = head.find(b"content-length:")
            length = int(head[at + 15:].split(b"\r\n", 1)[0]) if at >= 0 else 0
            body = self.seen[end + 4:end + 4 + length]
            if len(body) < length:
                return
            self.seen = self.seen[end + 4 + length:]
            self.transport.write(answer(head, body))


def answer(head, body):
    if head.startswith(b"get"):
        return JSON % (len(MODELS), MODELS)
    return TEXT if body.startswith(TOOL, body.rfind(ROLE)) else CALL


async def main():
    server = await asyncio.get_running_loop().create_server(Connection, "127.0.0.1", 0)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
