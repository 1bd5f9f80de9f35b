//! What a random conversation happens in: its choices, its models behind strict servers, and what goes wrong outside.

use super::models::Desk;
use super::replies::{self, Asked};
use super::rng::Rng;
use aish_core::message::ToolChoice;
use aish_core::policy::ApprovalMode;
use aish_engine::{Engine, Model, Models, Routing};
use aish_provider::assemble::{Assembler, Ending};
use aish_provider::codec::{Encoded, codec_of};
use aish_provider::profile::CallsPerReply;
use aish_provider::{Delta, ErrorKind, Provider, ProviderError, Reply, ReplyStream, Request, strict};
use futures_util::future::{BoxFuture, FutureExt as _};
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::Duration;
use tokio::sync::watch;

/// Other models that each request is also written for, as if the person had just switched.
const SWITCHES_CHECKED: usize = 2;

/// What must occur in the requests of a few conversations, or the test has lost its bite: each is the trace of a hazard.
pub const TRACES: [&str; 26] = [
    "\"tool_calls\"",
    "\"reasoning_content\"",
    "\"image_url\"",
    "\"response_format\"",
    "\"function_call_output\"",
    "\"encrypted_content\"",
    "\"web_search_call\"",
    "\"input_image\"",
    "\"tool_result\"",
    "\"signature\"",
    "\"redacted_thinking\"",
    "\"server_tool_use\"",
    "\"cache_control\"",
    "\"budget_tokens\"",
    "\"functionResponse\"",
    "\"thoughtSignature\"",
    "\"inlineData\"",
    "[tool: ",
    "<thinking>",
    "in French, please",
    "[stopped: ",
    "declined by the user",
    "interrupted",
    "limit_reached",
    "invalid_arguments",
    "[left out: ",
];

/// What the parts of one conversation share.
pub struct Shared {
    rng: Mutex<Rng>,
    pub desks: Vec<Desk>,
    engine: OnceLock<Weak<Engine>>,
    interrupts: watch::Sender<bool>,
    /// Every refusal: whose, why, and the request.
    refusals: Mutex<Vec<String>>,
    /// How many requests were looked at.
    looked_at: Mutex<usize>,
    /// The traces found in them.
    traces: Mutex<BTreeSet<&'static str>>,
}

impl Shared {
    pub fn new(seed: u64, desks: Vec<Desk>) -> Arc<Self> {
        Arc::new(Self {
            rng: Mutex::new(Rng::new(seed)),
            desks,
            engine: OnceLock::new(),
            interrupts: watch::channel(false).0,
            refusals: Mutex::default(),
            looked_at: Mutex::default(),
            traces: Mutex::default(),
        })
    }

    /// The engine whose settings change under way.
    pub fn drives(&self, engine: &Arc<Engine>) {
        let _ = self.engine.set(Arc::downgrade(engine));
    }

    pub fn below(&self, end: usize) -> usize {
        self.rng.lock().unwrap().below(end)
    }

    pub fn percent(&self, percent: usize) -> bool {
        self.rng.lock().unwrap().percent(percent)
    }

    pub fn desk(&self) -> Desk {
        self.desks[self.below(self.desks.len())].clone()
    }

    pub fn looked_at(&self) -> usize {
        *self.looked_at.lock().unwrap()
    }

    pub fn traces(&self) -> BTreeSet<&'static str> {
        self.traces.lock().unwrap().clone()
    }

    pub fn refusals(&self) -> Vec<String> {
        self.refusals.lock().unwrap().clone()
    }

    /// Somebody presses Ctrl-C.
    pub fn interrupt(&self) {
        self.interrupts.send_replace(true);
    }

    /// Ctrl-C of the drive that begins now.
    pub fn fresh_interrupt(&self) -> watch::Receiver<bool> {
        self.interrupts.send_replace(false);
        self.interrupts.subscribe()
    }

    /// The person switches models in the middle of a turn.
    pub fn switch_model(&self) {
        let name = self.desk().name;
        if let Some(engine) = self.engine.get().and_then(Weak::upgrade) {
            engine.update(|settings| settings.model = name);
        }
    }

    /// What holds for the next turn.
    pub fn change_settings(&self, engine: &Engine) {
        let (model, work) = (self.desk().name, self.desk().name);
        engine.update(|settings| {
            settings.model = model;
            settings.mode = [ApprovalMode::Ask, ApprovalMode::Auto, ApprovalMode::Full][self.below(3)];
            settings.limits.max_tool_turns = 1 + u32::try_from(self.below(4)).unwrap();
            settings.limits.max_tool_depth = 1 + u32::try_from(self.below(2)).unwrap();
            settings.limits.max_result_chars = [200, 2_000, 24_000][self.below(3)];
            settings.tools = !self.percent(15);
            settings.parallel = self.percent(50);
            settings.instructions = ["", "Answer in Latin."][self.below(2)].to_owned();
            settings.schema = self.percent(15).then(|| Arc::new(reply_schema()));
            settings.routing = Routing {
                work: self.percent(20).then_some(work),
                ..Routing::default()
            };
        });
    }

    /// Writes a request for that model and lets its server look at it.
    pub fn look(&self, desk: &Desk, request: Request<'_>) -> Result<Encoded, ProviderError> {
        *self.looked_at.lock().unwrap() += 1;
        let request = Request {
            model: &desk.name,
            ..request
        };
        let written = codec_of(desk.profile.format).encode(request, &desk.profile);
        let encoded = written.inspect_err(|error| self.refused(desk, &error.message, "not written"))?;
        let text = String::from_utf8_lossy(&encoded.body);
        let found = TRACES.into_iter().filter(|trace| text.contains(trace));
        self.traces.lock().unwrap().extend(found);
        let body: Value = serde_json::from_str(&text).unwrap();
        let headers = encoded.headers.iter().map(|(name, value)| (*name, value.as_ref()));
        match strict::check(desk.api, &encoded.path, headers, &body) {
            Ok(()) => Ok(encoded),
            Err(refusal) => {
                self.refused(desk, &refusal.message, &format!("{body:#}"));
                Err(codec_of(desk.profile.format).decode_error(refusal.status, &refusal.body.to_string()))
            }
        }
    }

    fn refused(&self, desk: &Desk, why: &str, request: &str) {
        let refusal = format!("{} ({:?}): {why}\n{request}", desk.name, desk.api);
        self.refusals.lock().unwrap().push(refusal);
    }

    /// What came of a request: an answer, or one of the ways in which there is none.
    fn answer(&self, desk: &Desk, request: Request<'_>, encoded: Encoded) -> Result<Answer, ProviderError> {
        let mut rng = self.rng.lock().unwrap();
        if rng.percent(8) {
            let kind = rng.pick(&[
                ErrorKind::Status(429),
                ErrorKind::Status(500),
                ErrorKind::Status(404),
                ErrorKind::Connect,
                ErrorKind::ContextOverflow,
                ErrorKind::Auth,
            ]);
            return Err(failure(kind));
        }
        let tools: Vec<String> = match request.tool_choice {
            // Some call tools all the same.
            ToolChoice::None if !rng.percent(20) => Vec::new(),
            ToolChoice::None | ToolChoice::Auto => request.tools.iter().map(|tool| tool.name.clone()).collect(),
        };
        let asked = Asked {
            format: desk.profile.format,
            model: &desk.profile.model,
            tools: &tools,
            names: &encoded.names,
            has_own_tools: !desk.profile.provider_tools.is_empty(),
            is_encrypted: String::from_utf8_lossy(&encoded.body).contains("reasoning.encrypted_content"),
        };
        let body = replies::body(&mut rng, &asked);
        let ending = if rng.percent(6) { Ending::Cut } else { Ending::Read };
        let fails = rng.percent(3);
        let hangs = rng.percent(5);
        drop(rng);
        let mut assembler = Assembler::new(encoded.names, tools);
        if desk.profile.calls == CallsPerReply::One {
            assembler = assembler.with_calls_max(1);
        }
        let mut deltas = Vec::new();
        let mut decoder = codec_of(desk.profile.format).decoder();
        let read = decoder.body(&body.to_string(), &mut |piece| assembler.push(piece, &mut deltas));
        assert!(read.is_ok(), "{} cannot read {body:#}: {read:?}", desk.name);
        if fails {
            assembler.fail(failure(ErrorKind::Broken));
        }
        assembler.flush(&mut deltas);
        Ok(Answer {
            deltas,
            assembler,
            ending,
            hangs,
        })
    }
}

fn failure(kind: ErrorKind) -> ProviderError {
    ProviderError {
        kind,
        message: "a scripted failure".to_owned(),
        retry_after: Some(Duration::ZERO),
    }
}

fn reply_schema() -> Value {
    serde_json::json!({
        "type": "object",
        "properties": {"answer": {"type": "string"}, "sure": {"type": ["boolean", "null"]}},
        "required": ["answer"],
    })
}

struct Answer {
    deltas: Vec<Delta>,
    assembler: Assembler,
    ending: Ending,
    hangs: bool,
}

/// All models of a conversation.
pub struct Shelf(pub Arc<Shared>);

impl Models for Shelf {
    fn model(&self, name: &str) -> Result<Model, String> {
        let desk = self.0.desks.iter().find(|desk| desk.name == name);
        let desk = desk.ok_or_else(|| format!("no model {name}"))?.clone();
        // The next two of the list stand in for it.
        let at = self.0.desks.iter().position(|other| other.name == name).unwrap();
        let fallback = self.0.desks.iter().cycle().skip(at + 1).take(2);
        Ok(Model {
            name: desk.name.clone(),
            asked_for: Some(desk.profile.model.clone()),
            context_window: desk.context_window,
            max_output_tokens: None,
            images: desk.profile.images.is_yes(),
            fallback: fallback.map(|desk| desk.name.clone()).collect(),
            provider: Arc::new(Server {
                desk,
                shared: Arc::clone(&self.0),
            }),
        })
    }
}

/// A strict server with one model.
struct Server {
    desk: Desk,
    shared: Arc<Shared>,
}

impl Provider for Server {
    fn send<'a>(&'a self, request: Request<'a>) -> BoxFuture<'a, Result<Box<dyn ReplyStream>, ProviderError>> {
        let shared = &self.shared;
        for _ in 0..SWITCHES_CHECKED {
            // Only whether it is refused matters here.
            let _ = shared.look(&shared.desk(), request);
        }
        let answered = shared
            .look(&self.desk, request)
            .and_then(|encoded| shared.answer(&self.desk, request, encoded));
        if shared.percent(10) {
            shared.switch_model();
        }
        let stream = answered.map(|answer| {
            Box::new(Stream {
                answer,
                shared: Arc::clone(shared),
                is_over: false,
            }) as Box<dyn ReplyStream>
        });
        std::future::ready(stream).boxed()
    }
}

/// A reply, shown at once; one that hangs is interrupted by the person who waits for it.
struct Stream {
    answer: Answer,
    shared: Arc<Shared>,
    is_over: bool,
}

impl ReplyStream for Stream {
    fn next<'a>(&'a mut self, out: &'a mut Vec<Delta>) -> BoxFuture<'a, bool> {
        async move {
            if !self.answer.deltas.is_empty() {
                out.append(&mut self.answer.deltas);
                return true;
            }
            if self.answer.hangs {
                self.shared.interrupt();
                std::future::pending::<()>().await;
            }
            self.is_over = true;
            false
        }
        .boxed()
    }

    fn finish(self: Box<Self>) -> Reply {
        let ending = if self.is_over { self.answer.ending } else { Ending::Cut };
        self.answer.assembler.finish(ending)
    }
}
