"""Lets the official SDKs' own types look at requests: one JSON object a line in, one verdict a line out.

    {"format": "anthropic", "body": {…}}   →   ok
                                           →   refused: messages.0.role: Input should be 'user' or 'assistant'

The SDKs describe a request in types that are there for editors and hardly ever checked: iterables that nobody walks, unknown
fields that nobody minds. Here they are checked for real: every list is walked, no type is converted into another, and a field
that the SDK does not know is refused.

The interpreter that has the SDKs is printed by scripts/python-sdks.
"""

import json
import sys

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError
from pydantic_core import SchemaValidator

from anthropic.types import message_create_params
from google.genai import types as genai
from openai.types.chat import completion_create_params
from openai.types.responses import response_create_params

# Words of a refusal that are passed on.
REFUSAL_CHARS_MAX = 600


def tightened(schema):
    """The same schema with every list walked and every unknown field refused."""
    if isinstance(schema, list):
        return [tightened(item) for item in schema]
    if isinstance(schema, tuple):
        return tuple(tightened(item) for item in schema)
    if not isinstance(schema, dict):
        return schema
    schema = {key: tightened(value) for key, value in schema.items()}
    if schema.get("type") == "generator":
        schema["type"] = "list"
    if schema.get("type") in ("typed-dict", "model-fields"):
        schema["extra_behavior"] = "forbid"
    # Types of replies, which may be sent back as they came.
    if schema.get("type") == "model":
        schema["config"] = {**schema.get("config", {}), "extra_fields_behavior": "forbid"}
    return schema


def typed_dict(params):
    """A check against a TypedDict of an SDK."""
    validator = SchemaValidator(tightened(TypeAdapter(params).core_schema))
    return lambda body: validator.validate_json(json.dumps(body), strict=True)


class GeminiRequest(BaseModel):
    """The body of generateContent, of the parts that the SDK has types for."""

    model_config = ConfigDict(extra="forbid")

    contents: list[genai.Content]
    systemInstruction: genai.Content | None = None
    tools: list[genai.Tool] | None = None
    toolConfig: genai.ToolConfig | None = None
    generationConfig: genai.GenerationConfig | None = None
    safetySettings: list[genai.SafetySetting] | None = None
    cachedContent: str | None = None


def gemini(body):
    GeminiRequest.model_validate_json(json.dumps(body))


CHECKS = {
    ("openai-chat", True): typed_dict(completion_create_params.CompletionCreateParamsStreaming),
    ("openai-chat", False): typed_dict(completion_create_params.CompletionCreateParamsNonStreaming),
    ("openai-responses", True): typed_dict(response_create_params.ResponseCreateParamsStreaming),
    ("openai-responses", False): typed_dict(response_create_params.ResponseCreateParamsNonStreaming),
    ("anthropic", True): typed_dict(message_create_params.MessageCreateParamsStreaming),
    ("anthropic", False): typed_dict(message_create_params.MessageCreateParamsNonStreaming),
    ("gemini", True): gemini,
    ("gemini", False): gemini,
}


def verdict(request):
    body = request["body"]
    is_streamed = bool(body.get("stream")) if isinstance(body, dict) else False
    try:
        CHECKS[request["format"], is_streamed](body)
    except ValidationError as error:
        # In a union each alternative complains: those that got furthest into the body say most.
        errors = sorted(error.errors(include_url=False, include_input=False), key=lambda each: -len(each["loc"]))
        words = "; ".join(f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in errors)
        return f"refused: {words[:REFUSAL_CHARS_MAX]}"
    return "ok"


def main():
    for line in sys.stdin:
        print(verdict(json.loads(line)), flush=True)


if __name__ == "__main__":
    main()
