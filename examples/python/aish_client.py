"""A client of `aish serve` that runs its own tools. Standard library only, Python 3.9 or later.

- `Tools` turns functions into what a model is told of them (name, description, JSON Schema) and runs them.
- `Server.post` sends one request until it is answered. Every try carries the same Idempotency-Key, so a try whose answer was
  lost on the way is answered again and not done again. It raises `ApiError` when it is refused, `OSError` when nobody answers.
- `Agent.say` is the loop: run what the server waits for, send what came of it, until the reply is final.
"""
import inspect
import json
import random
import time
import urllib.error
import urllib.request
import uuid
from http.client import HTTPException

REQUEST_TIMEOUT_S = 600  # a slow model takes minutes; the server says something at least this often
PAUSE_S_FIRST, PAUSE_S_MAX = 0.2, 10.0
TRIES_MAX, EVENT_LINE_BYTES_MAX = 8, 16 << 20
TRY_AGAIN = {408, 429, 502, 503, 504}
SCHEMA_TYPES = {str: "string", int: "integer", float: "number", bool: "boolean", list: "array", dict: "object"}


class ApiError(Exception):
    """What the server refused: `status`, `kind` (a word for programs), message and hint (for people)."""
    def __init__(self, status, error):
        self.status, self.kind = status, error.get("kind", "unknown")
        hint = f" ({error['hint']})" if error.get("hint") else ""
        super().__init__(f"{status} {self.kind}: {error.get('message')}{hint}")


class Tools:
    """Functions that a model may call. Their parameters need annotations: str, int, float, bool, list or dict."""

    def __init__(self):
        self.functions, self.specs = {}, []

    def add(self, description):
        """Decorates a function; what it returns goes to the model, text as it is and anything else as JSON."""

        def register(function):
            parameters = inspect.signature(function).parameters.values()
            schema = {
                "type": "object",
                "properties": {p.name: {"type": SCHEMA_TYPES[p.annotation]} for p in parameters},
                "required": [p.name for p in parameters if p.default is p.empty],
                "additionalProperties": False,
            }
            self.functions[function.__name__] = function
            self.specs.append({"name": function.__name__, "description": description, "input_schema": schema})
            return function

        return register

    def run(self, name, arguments):
        """The result as text. A failure is a result too: the model reads it and decides what to do."""
        if name not in self.functions:
            return json.dumps({"error": f"Unknown tool: {name}"})
        try:
            result = self.functions[name](**arguments)
        except Exception as error:  # whatever a tool raises must not end the conversation
            return json.dumps({"error": f"{type(error).__name__}: {error}"})
        return result if isinstance(result, str) else json.dumps(result)


class Server:
    """Requests to one server. `on_text` is given the reply piece by piece while the model writes it."""
    def __init__(self, url, token, on_text=None):
        self.url, self.token, self.on_text, self.said = url.rstrip("/"), token, on_text, ""

    def get(self, path):
        """A GET changes nothing, so trying again is always right."""
        return self._until_answered(lambda: self._once("GET", path, None, {}))

    def post(self, path, body):
        """A POST that takes effect once, however often it has to be sent."""
        accept = "text/event-stream" if self.on_text else "application/json"
        headers = {"Idempotency-Key": str(uuid.uuid4()), "Content-Type": "application/json", "Accept": accept}
        return self._until_answered(lambda: self._once("POST", path, json.dumps(body).encode(), headers))

    def _until_answered(self, attempt):
        for number in range(1, TRIES_MAX + 1):
            wait_s = min(PAUSE_S_MAX, PAUSE_S_FIRST * 2 ** (number - 1)) * random.uniform(0.5, 1.0)
            try:
                return attempt()
            except urllib.error.HTTPError as error:
                if error.code not in TRY_AGAIN or number == TRIES_MAX:
                    raise ApiError(error.code, _error_of(error.read())) from None
                wait_s = max(wait_s, _seconds(error.headers.get("Retry-After")))
            except (OSError, HTTPException, ValueError) as error:  # refused, reset, late, cut, or no JSON
                if number == TRIES_MAX:
                    raise ConnectionError(f"no answer from {self.url} in {TRIES_MAX} tries: {error}") from error
            time.sleep(wait_s)

    def _once(self, method, path, body, headers):
        headers, self.said = {"Authorization": f"Bearer {self.token}", **headers}, ""
        request = urllib.request.Request(self.url + path, data=body, headers=headers, method=method)
        with urllib.request.urlopen(request, timeout=REQUEST_TIMEOUT_S) as answer:
            if answer.headers.get_content_type() == "text/event-stream":
                return self._follow(answer)
            return json.loads(answer.read())

    def _follow(self, answer):
        """Reads events up to the envelope, which comes last and is what a request without a stream would have answered."""
        for kind, data in events_of(answer):
            if kind == "delta" and data.get("type") == "text":
                self.said += data["text"]
                self.on_text(data["text"])
            elif kind == "envelope":
                return data
            elif kind == "error":
                raise HTTPException(data["error"]["message"])
        raise HTTPException("the stream ended before its envelope")


def events_of(stream):
    """The events of a text/event-stream: (kind, data read as JSON)."""
    kind, lines = "message", []
    while True:
        line = stream.readline(EVENT_LINE_BYTES_MAX)
        if not line:
            return  # what is not closed by an empty line was cut off, and is no event
        text = line.decode("utf-8", "replace").rstrip("\r\n")
        field, _, value = text.partition(":")
        value = value[1:] if value.startswith(" ") else value
        if text == "":
            if lines:
                yield kind, json.loads("\n".join(lines))
            kind, lines = "message", []
        elif field == "event":
            kind = value
        elif field == "data":
            lines.append(value)


def _error_of(body):
    try:
        return json.loads(body)["error"]
    except (ValueError, KeyError, TypeError):  # a proxy's page, not the server's answer
        return {"message": body[:200].decode("utf-8", "replace")}


def _seconds(text):
    return min(float(text), 60.0) if text and text.isdigit() else 0.0


class Agent:
    """A conversation with a model behind a server. `approve` is asked about calls that the server's policy asks about."""

    def __init__(self, url, token, tools, approve=lambda pending: False, on_text=None, conversation_id=None):
        self.server, self.tools, self.approve = Server(url, token, on_text), tools, approve
        self.conversation_id = conversation_id

    def say(self, message):
        """Sends a message, runs the tools it leads to, and gives the final reply."""
        body = {"message": message, "tools": self.tools.specs}
        if self.conversation_id:
            body["conversation_id"] = self.conversation_id
        return self._drive(self.server.post("/api/chat", body))

    def go_on(self):
        """Answers what the conversation waits for since an earlier run; None when it waits for nothing."""
        pending = self.server.get(f"/api/sessions/{self.conversation_id}").get("pending")
        return self._drive(pending) if pending else None

    def _drive(self, envelope):
        while True:
            self.conversation_id = envelope["conversation_id"]
            session = f"/api/sessions/{envelope['session_id']}" if "session_id" in envelope else None
            if envelope.get("tool_pending"):
                # Run once, sent as often as it takes: a second run could have a second effect.
                content = self.tools.run(envelope["tool_name"], envelope["tool_input"])
                answer = {"call_id": envelope["call_id"], "content": content}
                envelope = self.server.post(f"{session}/tool_result", answer)
            elif envelope.get("approval_pending"):
                verdict = "approve" if self.approve(envelope) else "deny"
                # The digest says which call was shown: another one does not run on this answer.
                answer = {"call_id": envelope["call_id"], "digest": envelope["digest"], "answer": verdict}
                envelope = self.server.post(f"{session}/approval", answer)
            else:
                # What a try that broke had streamed is not streamed again.
                if self.server.on_text and not self.server.said.endswith(envelope["reply"]):
                    self.server.on_text(envelope["reply"])
                return envelope["reply"]
