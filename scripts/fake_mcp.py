#!/usr/bin/env python3
"""A fake MCP server, for whole-process measurements: streamable HTTP that answers in JSON, or one process over its pipes.

    scripts/fake_mcp.py           prints its base URL on the first line of standard output, and serves until it is ended
    scripts/fake_mcp.py stdio     speaks on standard input and output

The path says what kind of server answers: /quick at once, /slow/MS after so many milliseconds to `initialize`, /hang never. Each
offers one tool and speaks the protocol with `initialize`.

Only the standard library is used. It is no test double: crates/aish/tests/support has one that is scripted.
"""

import http.server
import json
import sys
import time

PROTOCOL = "2025-11-25"
TOOL = {"name": "echo", "description": "Says what it is told", "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}}}


def answer(message):
    """The answer to a message, or None where there is none."""
    method = message.get("method")
    if "id" not in message or method is None:
        return None
    reply = {"jsonrpc": "2.0", "id": message["id"]}
    if method == "initialize":
        about = {"name": "fake", "version": "1"}
        return reply | {"result": {"protocolVersion": PROTOCOL, "capabilities": {"tools": {}}, "serverInfo": about}}
    if method == "tools/list":
        return reply | {"result": {"tools": [TOOL]}}
    if method == "tools/call":
        text = message["params"].get("arguments", {}).get("text", "")
        return reply | {"result": {"content": [{"type": "text", "text": text}]}}
    if method == "ping":
        return reply | {"result": {}}
    return reply | {"error": {"code": -32601, "message": "Method not found"}}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Head and body in one packet each would wait for each other.
    wbufsize = -1
    disable_nagle_algorithm = True

    def do_POST(self):
        message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        kind, _, pause_ms = self.path.strip("/").partition("/")
        if kind == "hang":
            # Until the client has gone.
            self.rfile.read(1)
            return
        if kind == "slow" and message.get("method") == "initialize":
            time.sleep(int(pause_ms) / 1e3)
        reply = answer(message)
        body = b"" if reply is None else json.dumps(reply).encode()
        self.send_response(202 if reply is None else 200)
        if reply is not None:
            self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.send_response(405)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    # Ten clients connect at once.
    request_queue_size = 64

    def handle_error(self, *_):
        """A client that goes away is no trouble."""


def main():
    if sys.argv[1:] == ["stdio"]:
        for line in sys.stdin:
            reply = answer(json.loads(line))
            if reply is not None:
                print(json.dumps(reply), flush=True)
        return
    server = Server(("127.0.0.1", 0), Handler)
    print(f"http://127.0.0.1:{server.server_address[1]}", flush=True)
    server.serve_forever()


main()
