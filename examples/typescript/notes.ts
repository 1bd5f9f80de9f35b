/** A notes app whose assistant lives in `aish serve`: the notes are here, and so are the tools that touch them. See README.md. */
import { appendFileSync, existsSync, readFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { Agent, Server, type ApprovalPending, type Tool } from "./client.js";

const { AISH_URL = "http://127.0.0.1:8765", AISH_TOKEN, AISH_TOKEN_FILE, XDG_DATA_HOME, NOTES_FILE = "notes.txt" } = process.env;

const tools: Tool[] = [
  {
    name: "note_list",
    description: "Lists the user's notes, one a line.",
    input_schema: { type: "object", properties: {}, additionalProperties: false },
    run: () => (existsSync(NOTES_FILE) ? readFileSync(NOTES_FILE, "utf8") : ""),
  },
  {
    name: "note_add",
    description: "Adds a note of one line.",
    input_schema: { type: "object", properties: { text: { type: "string" } }, required: ["text"] },
    run: ({ text }) => {
      if (typeof text !== "string") throw new Error("text is missing");
      appendFileSync(NOTES_FILE, `${text.replace(/\s*\n\s*/g, " ")}\n`);
      return "added";
    },
  },
];

/** What a model wrote, unable to steer the terminal: characters that cannot be seen are escaped. */
function shown(text: string): string {
  return text.replace(/[^\n\t\P{C}]|\p{Zl}|\p{Zp}/gu, (c) => `\\u{${c.codePointAt(0)?.toString(16)}}`);
}

const input = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const line = async (): Promise<string | undefined> => (await input.next()).value;

/** Asks at the terminal; no answer is no. */
async function ask(pending: ApprovalPending): Promise<boolean> {
  console.log(`\n${shown(pending.tool_name)} ${shown(JSON.stringify(pending.tool_input))}\n${shown(pending.reason)}`);
  process.stdout.write("run it? [y/N] ");
  return /^y/i.test((await line())?.trim() ?? "");
}

function token(): string {
  const data = XDG_DATA_HOME || join(homedir(), ".local", "share");
  const file = AISH_TOKEN_FILE || join(data, "aish", "serve-token"); // where `aish serve` puts it
  return AISH_TOKEN || readFileSync(file, "utf8").trim();
}

/** A message a line. A line is read when the one before has been answered: what comes in between answers a question. */
async function* typed(): AsyncGenerator<string> {
  for (;;) {
    if (process.stdin.isTTY) process.stdout.write("> ");
    const message = await line();
    if (message === undefined) return;
    if (message.trim()) yield message.trim();
  }
}

async function main(words: string[]): Promise<void> {
  const server = new Server(AISH_URL, token(), (text) => process.stdout.write(shown(text)));
  const resumed = words[0] === "--resume" ? words.splice(0, 2)[1] : undefined;
  const agent = new Agent(server, tools, ask, resumed);
  // However it ends: with --resume it goes on.
  process.on("exit", () => agent.conversationId && console.error(`[conversation ${agent.conversationId}]`));
  process.on("SIGINT", () => process.exit(130));
  if (resumed && (await agent.goOn())) console.log();
  for await (const message of words.length > 0 ? [words.join(" ")] : typed()) {
    await agent.say(message);
    console.log();
  }
}

/** What went wrong, in a line: refused, not reached (the reason is beneath), or no token. */
function told(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? `the server cannot be reached: ${error.cause.message}` : error.message;
}

try {
  await main(process.argv.slice(2));
  process.exit(0); // an open input would keep the program
} catch (error) {
  console.error(`notes: ${told(error)}`);
  process.exit(1);
}
