/** A notes app whose assistant lives in `aish serve`: the notes are here, and so are the tools that touch them. See README.md. */
import { appendFileSync, existsSync, readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { Agent, ApiError, Server, type ApprovalPending, type Tool } from "./client.js";

const { AISH_URL = "http://127.0.0.1:8765", AISH_TOKEN, AISH_TOKEN_FILE = "token", NOTES_FILE = "notes.txt" } = process.env;

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

async function main(words: string[]): Promise<void> {
  const token = AISH_TOKEN ?? readFileSync(AISH_TOKEN_FILE, "utf8").trim();
  const server = new Server(AISH_URL, token, (text) => process.stdout.write(shown(text)));
  const resumed = words[0] === "--resume" ? words.splice(0, 2)[1] : undefined;
  const agent = new Agent(server, tools, ask, resumed);
  if (resumed && (await agent.goOn())) console.log();
  // A line is read when the one before has been answered: what comes in between answers a question.
  for await (const message of words.length > 0 ? [words.join(" ")] : input) {
    await agent.say(message);
    console.log();
  }
  console.error(`[conversation ${agent.conversationId}]`);
}

try {
  await main(process.argv.slice(2));
  process.exit(0); // an open input would keep the program
} catch (error) {
  console.error(`notes: ${error instanceof ApiError ? error.message : `the server cannot be reached: ${String(error)}`}`);
  process.exit(1);
}
