#!/usr/bin/env python3
"""A fast fake of a model server that speaks all four wire formats, for whole-process measurements.

    scripts/fake_llm.py [--port N] [--chunks N] [--rounds N] [--pause-ms MS] [--log FILE]

It prints its base URL on the first line of standard output and serves until it is ended. Answers are rendered once,
before the first request, so that a measured client and `curl` are compared on the same bytes at the same speed.

A request is answered by a tool call while fewer than --rounds calls have been answered in it, then by a text of
--chunks chunks. The path /chunks/N/v1 and /rounds/N/v1 in place of /v1 override both per base URL. Which format is
answered in is told by the path, as the official APIs have it; tool calls are made in chat completions only. With
--log, every request body is appended to FILE, one line each.

Only the standard library is used. It is no test double: crates/aish/tests/support has one that is scripted and strict.
"""

import argparse
import json
import re
import socket
import sys
import threading
import time

HEAD_JSON = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n"
HEAD_STREAM = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
# How many chunks go out in one write; a real server writes each by itself, at its own pace.
WRITE_CHUNKS = 64
CALL_MARK = b'"tool_call_id"'


def event(delta, finish=None, usage=None):
    """One event of a stream, in its HTTP chunk."""
    chunk = {
        "id": "chatcmpl-fake",
        "object": "chat.completion.chunk",
        "created": 1700000000,
        "model": "fake",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
    }
    if usage:
        chunk["choices"], chunk["usage"] = [], usage
    return framed("data: " + json.dumps(chunk) + "\n\n")


def framed(text):
    data = text.encode()
    return b"%x\r\n%s\r\n" % (len(data), data)


def ending(finish):
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    return [event({}, finish), event({}, usage=usage), framed("data: [DONE]\n\n"), b"0\r\n\r\n"]


def text_events(chunks):
    words = [event({"content": f"w{i} "}) for i in range(chunks)]
    return [event({"role": "assistant", "content": None})] + words + ending("stop")


def call_events(number):
    pieces = [{"id": f"call_{number}", "type": "function", "function": {"name": "glob", "arguments": ""}}]
    pieces += [{"function": {"arguments": text}} for text in ('{"pattern"', ':"*.none"}')]
    calls = [event({"tool_calls": [{"index": 0, **piece}]}) for piece in pieces]
    return [event({"role": "assistant", "content": None})] + calls + ending("tool_calls")


def typed(kind, **fields):
    """One event of a format that names its events."""
    return framed(f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n")


def messages_events(chunks):
    """A text in Anthropic's format."""
    message = {"id": "msg_fake", "type": "message", "role": "assistant", "model": "fake", "content": []}
    begin = {**message, "stop_reason": None, "usage": {"input_tokens": 10, "output_tokens": 1}}
    yield typed("message_start", message=begin)
    yield typed("content_block_start", index=0, content_block={"type": "text", "text": ""})
    for i in range(chunks):
        yield typed("content_block_delta", index=0, delta={"type": "text_delta", "text": f"w{i} "})
    yield typed("content_block_stop", index=0)
    yield typed("message_delta", delta={"stop_reason": "end_turn"}, usage={"output_tokens": 5})
    yield typed("message_stop")
    yield b"0\r\n\r\n"


def responses_events(chunks):
    """A text in the format of OpenAI's Responses."""
    response = {"id": "resp_fake", "object": "response", "model": "fake", "status": "in_progress", "output": []}
    item = {"id": "msg_fake", "type": "message", "role": "assistant", "status": "in_progress", "content": []}
    place = {"item_id": "msg_fake", "output_index": 0, "content_index": 0}
    text = "".join(f"w{i} " for i in range(chunks))
    part = {"type": "output_text", "text": text, "annotations": []}
    yield typed("response.created", response=response)
    yield typed("response.output_item.added", output_index=0, item=item)
    for i in range(chunks):
        yield typed("response.output_text.delta", **place, delta=f"w{i} ")
    yield typed("response.output_text.done", **place, text=text)
    item = {**item, "status": "completed", "content": [part]}
    yield typed("response.output_item.done", output_index=0, item=item)
    usage = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}
    yield typed("response.completed", response={**response, "status": "completed", "output": [item], "usage": usage})
    yield b"0\r\n\r\n"


def gemini_events(chunks):
    """A text in Gemini's format."""
    for i in range(chunks):
        candidate = {"index": 0, "content": {"role": "model", "parts": [{"text": f"w{i} "}]}}
        last = i == chunks - 1
        more = {"usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 5}} if last else {}
        candidate |= {"finishReason": "STOP"} if last else {}
        yield framed("data: " + json.dumps({"candidates": [candidate], "modelVersion": "fake", **more}) + "\n\n")
    yield b"0\r\n\r\n"


# What a path ends in, and how it is answered.
FORMATS = {"/messages": messages_events, "/responses": responses_events, ":streamGenerateContent": gemini_events}


class Renderer:
    """Answers as lists of ready writes, each rendered once."""

    def __init__(self, write_chunks):
        self.write_chunks = write_chunks
        self.ready = {}
        self.lock = threading.Lock()

    def text(self, chunks):
        return self.joined(("text", chunks), lambda: text_events(chunks))

    def other(self, ending, chunks):
        return self.joined((ending, chunks), lambda: list(FORMATS[ending](chunks)))

    def call(self, number):
        return self.joined(("call", number), lambda: call_events(number))

    def joined(self, key, render):
        with self.lock:
            if key not in self.ready:
                events = render()
                step = self.write_chunks
                writes = [b"".join(events[i : i + step]) for i in range(0, len(events), step)]
                writes[0] = HEAD_STREAM + writes[0]
                self.ready[key] = writes
            return self.ready[key]


def read_request(stream):
    """Path and body of the next request, or None at the end of the connection."""
    line = stream.readline()
    if not line:
        return None
    method, path = line.split()[:2]
    length = 0
    while True:
        header = stream.readline()
        if header in (b"\r\n", b"\n", b""):
            break
        name, _, value = header.partition(b":")
        if name.lower() == b"content-length":
            length = int(value)
    return method, path.decode(), stream.read(length)


def plain(value):
    body = json.dumps(value).encode()
    return HEAD_JSON.format(len(body)).encode() + body


def answer(connection, renderer, args, path, body):
    chunks, rounds = args.chunks, args.rounds
    for name, number in re.findall(r"/(chunks|rounds)/(\d+)", path):
        chunks, rounds = (int(number), rounds) if name == "chunks" else (chunks, int(number))
    other = next((ending for ending in FORMATS if path.split("?")[0].endswith(ending)), None)
    if other:
        for write in renderer.other(other, chunks):
            connection.sendall(write)
            if args.pause_ms:
                time.sleep(args.pause_ms / 1000)
        return
    answered = body.count(CALL_MARK)
    if b'"stream":true' not in body.replace(b'"stream": true', b'"stream":true'):
        message = {"role": "assistant", "content": "w " * chunks}
        choice = {"index": 0, "finish_reason": "stop", "message": message}
        connection.sendall(plain({"id": "fake", "object": "chat.completion", "model": "fake", "choices": [choice]}))
        return
    for write in renderer.call(answered) if answered < rounds else renderer.text(chunks):
        connection.sendall(write)
        if args.pause_ms:
            time.sleep(args.pause_ms / 1000)


def serve(connection, renderer, args):
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        with connection, connection.makefile("rb") as stream:
            while request := read_request(stream):
                method, path, body = request
                if method == b"GET":
                    models = {"object": "list", "data": [{"id": "fake", "object": "model"}]}
                    connection.sendall(plain(models if path.endswith("/models") else {"status": "ok"}))
                    continue
                if args.log:
                    with open(args.log, "ab") as log:
                        log.write(body + b"\n")
                answer(connection, renderer, args, path, body)
    except OSError:
        pass  # The client has gone, which is its right.


def main():
    parser = argparse.ArgumentParser(description="A fast fake chat server.")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--chunks", type=int, default=20, help="text chunks of an answer")
    parser.add_argument("--rounds", type=int, default=0, help="tool calls before the answer")
    parser.add_argument("--pause-ms", type=float, default=0, help="pause after every write; each is then one chunk")
    parser.add_argument("--log", help="file for the request bodies")
    args = parser.parse_args()
    renderer = Renderer(1 if args.pause_ms else WRITE_CHUNKS)
    renderer.text(args.chunks)
    listener = socket.create_server(("127.0.0.1", args.port), backlog=64)
    print(f"http://127.0.0.1:{listener.getsockname()[1]}/v1", flush=True)
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=serve, args=(connection, renderer, args), daemon=True).start()


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
