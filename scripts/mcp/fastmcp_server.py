"""A server of the Python package fastmcp over streamable HTTP, for the tests of the client.

    fastmcp_server.py [json]     on a free port of 127.0.0.1; path /mcp; replies as event streams, or as JSON

The line "listening on PORT" on standard output says that it is ready. It ends on SIGTERM.

The tools are small, and each shows one thing that a client has to do: structured output, an image, an error, progress, a log
message, a question to the user (elicitation), a question to the model (sampling), a changed list of tools.
"""

import asyncio
import base64
import socket
import sys
from dataclasses import dataclass

import uvicorn
from fastmcp import Context, FastMCP
from fastmcp.exceptions import ToolError
from fastmcp.utilities.types import Image
from mcp_types import (
    CreateMessageRequest,
    CreateMessageRequestParams,
    CreateMessageResult,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    InputRequiredResult,
    SamplingMessage,
    TextContent,
    ToolListChangedNotification,
)

Question = ElicitRequest | CreateMessageRequest
Answer = ElicitResult | CreateMessageResult

# The first protocol version without sessions and without requests of the server.
STATELESS_FROM = "2026-07-28"

# One transparent pixel.
PIXEL_PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
)

server = FastMCP("aish-fastmcp", version="1.0.0", instructions="Small tools for tests.")


@dataclass
class Place:
    """What `weather` answers with: its type becomes the output schema."""

    city: str
    degrees: float


@server.tool(annotations={"readOnlyHint": True, "idempotentHint": True})
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool(annotations={"readOnlyHint": True})
def weather(city: str) -> Place:
    """The weather in a city, as structured output."""
    return Place(city=city, degrees=21.5)


@server.tool
def picture() -> Image:
    """A picture of one pixel."""
    return Image(data=PIXEL_PNG, format="png")


@server.tool
def fail(reason: str) -> str:
    """Always fails, with that reason."""
    raise ToolError(reason)


@server.tool
async def count(steps: int, context: Context) -> str:
    """Counts, and reports progress and a log message at each step."""
    for step in range(1, steps + 1):
        await context.report_progress(step, steps, f"step {step}")
        await context.info(f"counted {step}")
        await asyncio.sleep(0)
    return f"counted to {steps}"


async def answer_of(context: Context, request: Question) -> Answer | InputRequiredResult:
    """The client's answer to that question, in the way of its protocol.

    Up to 2025-11-25 the question is a request inside the call. From 2026-07-28 on the call ends with the question, and the client
    calls again with the answer and with the state, which must come back as it was.
    """
    if context.request_context.protocol_version < STATELESS_FROM:
        if isinstance(request, ElicitRequest):
            params = request.params
            return await context.session.elicit(params.message, params.requested_schema, related_request_id=context.request_id)
        params = request.params
        return await context.session.create_message(
            params.messages, max_tokens=params.max_tokens, related_request_id=context.request_id
        )
    if not context.input_responses:
        return InputRequiredResult(input_requests={"question": request}, request_state="asked once")
    if context.request_state != "asked once":
        raise ToolError(f"the state came back as {context.request_state!r}")
    return context.input_responses["question"]


@server.tool
async def ask_user(question: str, context: Context) -> str | InputRequiredResult:
    """Asks the user for a word."""
    schema = {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]}
    answer = await answer_of(context, ElicitRequest(params=ElicitRequestFormParams(message=question, requested_schema=schema)))
    if isinstance(answer, InputRequiredResult):
        return answer
    return f"{answer.action}: {(answer.content or {}).get('word')}"


@server.tool
async def ask_model(question: str, context: Context) -> str | InputRequiredResult:
    """Asks the client's model."""
    message = SamplingMessage(role="user", content=TextContent(text=question))
    answer = await answer_of(
        context, CreateMessageRequest(params=CreateMessageRequestParams(messages=[message], max_tokens=100))
    )
    if isinstance(answer, InputRequiredResult):
        return answer
    return f"the model said: {answer.content.text}"


@server.tool
async def grow(name: str, context: Context) -> str:
    """Adds a tool of that name; the client is told that the list changed."""

    def added() -> str:
        """A tool that was not there before."""
        return f"I am {name}"

    server.tool(added, name=name)
    await context.send_notification(ToolListChangedNotification())
    return f"added {name}"


@server.prompt
def review(code: str) -> str:
    """Ask for a review of code."""
    return f"Please review this code:\n{code}"


@server.resource("memo://greeting", mime_type="text/plain")
def greeting() -> str:
    """A greeting."""
    return "hello from fastmcp"


@server.resource("memo://double/{number}", mime_type="text/plain")
def double(number: str) -> str:
    """Twice that number."""
    return str(2 * int(number))


def main() -> None:
    app = server.http_app(path="/mcp", json_response=sys.argv[1:] == ["json"])
    listener = socket.create_server(("127.0.0.1", 0))
    print(f"listening on {listener.getsockname()[1]}", flush=True)
    config = uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=1)
    uvicorn.Server(config).run(sockets=[listener])


main()
