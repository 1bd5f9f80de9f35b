#!/usr/bin/env python3
"""A notes app whose assistant lives in `aish serve`: the notes are here, and so are the tools that touch them.

    python3 notes.py                    # a conversation, a message a line
    python3 notes.py 'what do I need?'  # one message
    python3 notes.py --resume ID        # answers what that conversation waits for, then goes on

AISH_URL is where the server is (http://127.0.0.1:8765). The token is in AISH_TOKEN, or in the file AISH_TOKEN_FILE names, or
else where `aish serve` puts it. The notes are in NOTES_FILE (notes.txt).
"""
import os
import sys
from pathlib import Path

from aish_client import Agent, ApiError, Tools

tools = Tools()
notes_file = Path(os.environ.get("NOTES_FILE", "notes.txt"))


@tools.add("Lists the user's notes, one a line.")
def note_list() -> str:
    return notes_file.read_text() if notes_file.exists() else ""


@tools.add("Adds a note of one line.")
def note_add(text: str) -> str:
    with notes_file.open("a") as file:
        file.write(" ".join(text.splitlines()) + "\n")
    return "added"


def shown(text):
    """What a model wrote, unable to steer the terminal: characters that cannot be seen are escaped."""
    return "".join(c if c.isprintable() or c in "\n\t" else c.encode("unicode_escape").decode() for c in text)


def ask(pending):
    """Asks at the terminal; no answer is no."""
    print(f"\n{shown(pending['tool_name'])} {shown(str(pending['tool_input']))}\n{shown(pending['reason'])}")
    try:
        return input("run it? [y/N] ").strip().lower().startswith("y")
    except EOFError:
        return False


def token():
    data = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    file = os.environ.get("AISH_TOKEN_FILE") or Path(data) / "aish" / "serve-token"
    return os.environ.get("AISH_TOKEN") or Path(file).read_text().strip()


def typed():
    """A message a line. A line is read when the one before has been answered: what comes in between answers a question."""
    while True:
        if sys.stdin.isatty():
            print("> ", end="", flush=True)
        line = sys.stdin.readline()
        if not line:
            return
        if line.strip():
            yield line.strip()


def main(arguments):
    url, tell = os.environ.get("AISH_URL", "http://127.0.0.1:8765"), lambda text: print(shown(text), end="", flush=True)
    agent = Agent(url, token(), tools, approve=ask, on_text=tell)
    try:
        if arguments[:1] == ["--resume"]:
            if len(arguments) == 1:
                sys.exit("notes: --resume needs the id of a conversation")
            agent.conversation_id, arguments = arguments[1], arguments[2:]
            if agent.go_on():
                print()
        for message in [" ".join(arguments)] if arguments else typed():
            agent.say(message)
            print(flush=True)
    finally:
        # However it ended: with --resume it goes on.
        if agent.conversation_id:
            print(f"[conversation {agent.conversation_id}]", file=sys.stderr)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except (ApiError, OSError) as error:  # refused, or not to be reached
        sys.exit(f"notes: {error}")
    except KeyboardInterrupt:
        sys.exit(130)
