/**
 * A client of `aish serve` that runs its own tools.
 *
 * - `Tool`: what a model is told of a function, and the function.
 * - `Server.post`: one request until it is answered. Every try carries the same Idempotency-Key, so a try whose answer was
 *   lost on the way is answered again and not done again.
 * - `Agent.say`: the loop. Run what the server waits for, send what came of it, until the reply is final.
 */
import { randomUUID } from "node:crypto"; // in a browser: crypto.randomUUID

export type Json = null | boolean | number | string | Json[] | Fields;
export type Fields = { [key: string]: Json };

/** A function that a model may call. What it returns goes to the model: text as it is, anything else as JSON. */
export interface Tool {
  name: string;
  description: string;
  input_schema: Fields;
  run(input: Fields): Promise<Json> | Json;
}

type Named = { conversation_id: string; model: string; agentic: true; tools_used: string[] };
type Waiting = Named & { session_id: string; call_id: string; tool_name: string; tool_input: Fields };
export type Final = Named & { reply: string }; // the model is done
export type ToolPending = Waiting & { tool_pending: true }; // a tool of ours is to be run
export type ApprovalPending = Waiting & { approval_pending: true; digest: string; reason: string }; // a person is asked
export type Envelope = Final | ToolPending | ApprovalPending;

/** What the server refused: `kind` is for programs, the message for people. */
export class ApiError extends Error {
  constructor(readonly status: number, readonly kind: string, message: string, readonly retryAfterMs: number) {
    super(`${status} ${kind}: ${message}`);
  }
}

const REQUEST_TIMEOUT_MS = 600_000; // a slow model takes minutes
const TRIES_MAX = 8;
const [PAUSE_MS_FIRST, PAUSE_MS_MAX] = [200, 10_000];
const RETRY_AFTER_S_MAX = 60;
const EVENT_CHARS_MAX = 16 << 20;
const TRY_AGAIN = [408, 429, 502, 503, 504];

/** Requests to one server. `onText` is given the reply piece by piece while the model writes it. */
export class Server {
  private said = "";

  constructor(private readonly url: string, private readonly token: string, private readonly onText?: (text: string) => void) {}

  /** A GET changes nothing, so trying again is always right. */
  async get(path: string): Promise<unknown> {
    return this.untilAnswered(path, { method: "GET" }, {});
  }

  /** A POST that takes effect once, however often it has to be sent. */
  async post(path: string, body: unknown): Promise<Envelope> {
    const accept = this.onText ? "text/event-stream" : "application/json";
    const headers = { "Content-Type": "application/json", "Idempotency-Key": randomUUID(), Accept: accept };
    return (await this.untilAnswered(path, { method: "POST", body: JSON.stringify(body) }, headers)) as Envelope;
  }

  private async untilAnswered(path: string, init: RequestInit, headers: Record<string, string>): Promise<unknown> {
    for (let number = 1; ; number++) {
      let pauseMs = Math.min(PAUSE_MS_MAX, PAUSE_MS_FIRST * 2 ** (number - 1)) * (0.5 + Math.random() / 2);
      try {
        return await this.once(path, init, headers);
      } catch (error) {
        // Anything but a refusal is a connection that was never made, or was cut before the whole answer was here.
        const canPass = !(error instanceof ApiError) || TRY_AGAIN.includes(error.status);
        if (!canPass || number === TRIES_MAX) throw error;
        if (error instanceof ApiError) pauseMs = Math.max(pauseMs, error.retryAfterMs);
      }
      await new Promise((resolve) => setTimeout(resolve, pauseMs));
    }
  }

  private async once(path: string, init: RequestInit, headers: Record<string, string>): Promise<unknown> {
    this.said = "";
    const answer = await fetch(this.url.replace(/\/$/, "") + path, {
      ...init,
      headers: { Authorization: `Bearer ${this.token}`, ...headers },
      redirect: "error", // the token is for this server alone
      signal: AbortSignal.timeout(REQUEST_TIMEOUT_MS),
    });
    if (!answer.ok) throw await refusal(answer);
    const isStream = answer.headers.get("content-type")?.startsWith("text/event-stream") ?? false;
    return isStream && answer.body ? this.follow(answer.body) : answer.json();
  }

  /** Reads events up to the envelope, which comes last and is what a request without a stream would have answered. */
  private async follow(body: ReadableStream<Uint8Array>): Promise<unknown> {
    for await (const { kind, data } of eventsOf(body)) {
      const { type, text = "", ...fields } = JSON.parse(data) as { type?: string; text?: string };
      if (kind === "delta" && type === "text") {
        this.said += text;
        this.onText?.(text);
      }
      if (kind === "error") throw new Error(data);
      if (kind === "envelope") return fields;
    }
    throw new Error("the stream ended before its envelope");
  }

  /** Tells a reply of which not all was streamed: what a try that broke had streamed is not streamed again. */
  finish(reply: string): void {
    if (!this.said.endsWith(reply)) this.onText?.(reply);
  }
}

async function refusal(answer: Response): Promise<ApiError> {
  const text = await answer.text();
  const retryAfterMs = Math.min(RETRY_AFTER_S_MAX, Number(answer.headers.get("retry-after")) || 0) * 1000;
  try {
    const { kind, message, hint } = (JSON.parse(text) as { error: Record<string, string> }).error;
    return new ApiError(answer.status, kind ?? "unknown", hint ? `${message} (${hint})` : `${message}`, retryAfterMs);
  } catch {
    return new ApiError(answer.status, "unknown", text.slice(0, 200), retryAfterMs); // a proxy's page
  }
}

/** The events of a text/event-stream. What is not closed by an empty line was cut off, and is no event. */
async function* eventsOf(body: ReadableStream<Uint8Array>): AsyncGenerator<{ kind: string; data: string }> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const piece of body as unknown as AsyncIterable<Uint8Array>) {
    const events = (text + decoder.decode(piece, { stream: true })).split(/\r?\n\r?\n/);
    text = events.pop() ?? "";
    for (const event of events) {
      const field = (name: string) =>
        event.split(/\r?\n/).flatMap((line) => (line.startsWith(`${name}:`) ? line.slice(name.length + 1).trimStart() : []));
      const data = field("data").join("\n");
      if (data) yield { kind: field("event")[0] ?? "message", data };
    }
    if (text.length > EVENT_CHARS_MAX) throw new Error("an event without end");
  }
}

/** A conversation with a model behind a server. `approve` is asked about calls that the server's policy asks about. */
export class Agent {
  constructor(
    private readonly server: Server,
    private readonly tools: Tool[],
    private readonly approve: (pending: ApprovalPending) => Promise<boolean>,
    public conversationId?: string,
  ) {}

  /** Sends a message, runs the tools it leads to, and gives the final reply. */
  async say(message: string): Promise<Final> {
    const tools = this.tools.map(({ name, description, input_schema }) => ({ name, description, input_schema }));
    return this.drive(await this.server.post("/api/chat", { message, tools, conversation_id: this.conversationId }));
  }

  /** Answers what the conversation waits for since an earlier run. */
  async goOn(): Promise<Final | undefined> {
    const session = (await this.server.get(`/api/sessions/${this.conversationId}`)) as { pending: Envelope | null };
    return session.pending ? this.drive(session.pending) : undefined;
  }

  private async drive(envelope: Envelope): Promise<Final> {
    for (;;) {
      this.conversationId = envelope.conversation_id;
      if ("tool_pending" in envelope) {
        // Run once, sent as often as it takes: a second run could have a second effect.
        const answer = { call_id: envelope.call_id, content: await this.run(envelope.tool_name, envelope.tool_input) };
        envelope = await this.server.post(`/api/sessions/${envelope.session_id}/tool_result`, answer);
      } else if ("approval_pending" in envelope) {
        const verdict = (await this.approve(envelope)) ? "approve" : "deny";
        // The digest says which call was shown: another one does not run on this answer.
        const answer = { call_id: envelope.call_id, digest: envelope.digest, answer: verdict };
        envelope = await this.server.post(`/api/sessions/${envelope.session_id}/approval`, answer);
      } else {
        this.server.finish(envelope.reply);
        return envelope;
      }
    }
  }

  /** A failure is a result too: the model reads it and decides what to do. */
  private async run(name: string, input: Fields): Promise<string> {
    try {
      const tool = this.tools.find((tool) => tool.name === name);
      if (!tool) throw new Error(`Unknown tool: ${name}`);
      const result = await tool.run(input);
      return typeof result === "string" ? result : JSON.stringify(result);
    } catch (error) {
      return JSON.stringify({ error: error instanceof Error ? error.message : String(error) });
    }
  }
}
