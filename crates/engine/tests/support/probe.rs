//! Tools that count their runs and do as a test says: answer, print, panic, or wait until they are let go.

use aish_core::action::{Action, Digest, Effect, Hint};
use aish_core::event::CallSource;
use aish_core::message::ToolSpec;
use aish_tools::{Asks, Cancel, Progress, Put, Ran, Tool, ToolContext, ToolOutput};
use futures_util::future::{BoxFuture, FutureExt as _};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use tokio::sync::watch;

/// What a run does. Its call has one argument, the number `n`.
pub enum Doing {
    /// Answers this at once.
    Answer(String),
    /// Prints these pieces, then answers.
    Print(Vec<String>),
    /// Panics.
    Panic,
    /// Waits until it is let go or cancelled.
    Wait(Arc<Latch>),
    /// Waits until it is let go, whatever anybody says.
    Insist(Arc<Latch>),
    /// Waits until at least `n` is counted.
    After(watch::Sender<u64>),
    /// Stops in the middle to ask; putting the question passes this latch, if there is one.
    Ask(Option<Arc<Latch>>),
}

/// Holds a run until the test has seen what it wants to see.
pub struct Latch {
    began: watch::Sender<bool>,
    open: watch::Sender<bool>,
}

impl Latch {
    pub fn new() -> Arc<Self> {
        Arc::new(Self {
            began: watch::channel(false).0,
            open: watch::channel(false).0,
        })
    }

    /// Waits until a run has begun.
    pub async fn began(&self) {
        self.began.subscribe().wait_for(|began| *began).await.unwrap();
    }

    /// Lets every run go.
    pub fn open(&self) {
        self.open.send_replace(true);
    }

    async fn pass(&self) {
        self.began.send_replace(true);
        self.open.subscribe().wait_for(|open| *open).await.unwrap();
    }
}

/// The tool.
pub struct Probe {
    spec: ToolSpec,
    effect: Option<Effect>,
    source: CallSource,
    doing: Doing,
    runs: AtomicUsize,
    cancelled: AtomicUsize,
    /// What it went on with.
    went_on: Mutex<Vec<Value>>,
}

impl Probe {
    /// A tool that only reads in the working tree.
    pub fn reader(name: &str, doing: Doing) -> Arc<Self> {
        Self::new(name, None, CallSource::Builtin, doing)
    }

    /// A tool whose effect nobody knows.
    pub fn writer(name: &str, doing: Doing) -> Arc<Self> {
        Self::new(name, Some(Effect::Remote), CallSource::Builtin, doing)
    }

    /// A tool of an MCP server.
    pub fn mcp(name: &str, doing: Doing) -> Arc<Self> {
        Self::new(name, Some(Effect::Remote), CallSource::Mcp, doing)
    }

    /// A tool of an MCP server that defines it so.
    pub fn defined(name: &str, definition: &str, doing: Doing) -> Arc<Self> {
        let effect = Effect::Delegate {
            definition: Digest::of(definition),
            hint: Hint::Unknown,
            changed: None,
        };
        Self::new(name, Some(effect), CallSource::Mcp, doing)
    }

    /// A tool the remote client executes.
    pub fn client(name: &str) -> Arc<Self> {
        Self::new(name, Some(Effect::Remote), CallSource::Client, Doing::Panic)
    }

    fn new(name: &str, effect: Option<Effect>, source: CallSource, doing: Doing) -> Arc<Self> {
        let input_schema = json!({
            "type": "object",
            "properties": { "n": { "type": "integer", "description": "a number" } },
            "required": ["n"],
            "additionalProperties": false,
        });
        Arc::new(Self {
            spec: ToolSpec {
                name: name.to_owned(),
                description: "A tool of a test.".to_owned(),
                input_schema,
            },
            effect,
            source,
            doing,
            runs: AtomicUsize::new(0),
            cancelled: AtomicUsize::new(0),
            went_on: Mutex::default(),
        })
    }

    /// How often it ran.
    pub fn runs(&self) -> usize {
        self.runs.load(Ordering::SeqCst)
    }

    /// What it went on with, once for each time it did.
    pub fn went_on(&self) -> Vec<Value> {
        self.went_on.lock().unwrap().clone()
    }

    /// How many runs were asked to stop and did.
    pub fn cancelled(&self) -> usize {
        self.cancelled.load(Ordering::SeqCst)
    }
}

impl Tool for Probe {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn source(&self) -> CallSource {
        self.source
    }

    fn inspect(&self, arguments: &Value, context: &ToolContext) -> Result<Action, String> {
        let path = context.directory.clone();
        Ok(Action {
            tool: self.spec.name.clone(),
            arguments: arguments.clone(),
            effects: vec![self.effect.clone().unwrap_or(Effect::Read { path })],
        })
    }

    fn run<'a>(
        &'a self,
        action: &'a Action,
        _context: &'a ToolContext,
        progress: &'a dyn Progress,
        mut cancel: Cancel,
    ) -> BoxFuture<'a, ToolOutput> {
        self.runs.fetch_add(1, Ordering::SeqCst);
        let n = action.arguments.get("n").and_then(Value::as_u64).unwrap_or_default();
        async move {
            match &self.doing {
                Doing::Answer(text) => answer(text, n),
                Doing::Print(pieces) => {
                    pieces.iter().for_each(|piece| progress.output(piece));
                    answer("printed", n)
                }
                Doing::Panic => panic!("the tool of a test panics"),
                Doing::Wait(latch) => tokio::select! {
                    biased;
                    () = latch.pass() => answer("let go", n),
                    _ = cancel.wait_for(|cancel| *cancel) => {
                        self.cancelled.fetch_add(1, Ordering::SeqCst);
                        ToolOutput::error("Cancelled")
                    }
                },
                Doing::Insist(latch) => {
                    latch.pass().await;
                    answer("let go", n)
                }
                Doing::Ask(_) => ToolOutput::error("asks, and nobody waits"),
                Doing::After(count) => {
                    count.subscribe().wait_for(|count| *count >= n).await.unwrap();
                    answer("in order", n)
                }
            }
        }
        .boxed()
    }

    fn run_or_ask<'a>(
        &'a self,
        action: &'a Action,
        context: &'a ToolContext,
        progress: &'a dyn Progress,
        cancel: Cancel,
    ) -> BoxFuture<'a, Ran> {
        async move {
            let output = self.run(action, context, progress, cancel).await;
            match &self.doing {
                Doing::Ask(_) => Ran::Asks(Asks {
                    lines: vec!["Which one?".to_owned()],
                    state: json!({ "of": action.arguments }),
                }),
                Doing::Answer(_)
                | Doing::Print(_)
                | Doing::Panic
                | Doing::Wait(_)
                | Doing::Insist(_)
                | Doing::After(_) => Ran::Output(output),
            }
        }
        .boxed()
    }

    fn put<'a>(&'a self, _action: &'a Action, state: &'a Value, _cancel: Cancel) -> BoxFuture<'a, Put> {
        async move {
            if let Doing::Ask(Some(latch)) = &self.doing {
                latch.pass().await;
            }
            Put::Answered(json!({ "state": state, "answer": "blue" }))
        }
        .boxed()
    }

    fn go_on<'a>(
        &'a self,
        action: &'a Action,
        _context: &'a ToolContext,
        _progress: &'a dyn Progress,
        _cancel: Cancel,
        answers: &'a Value,
    ) -> BoxFuture<'a, Ran> {
        self.went_on.lock().unwrap().push(answers.clone());
        let n = action.arguments.get("n").and_then(Value::as_u64).unwrap_or_default();
        std::future::ready(Ran::Output(answer("answered", n))).boxed()
    }
}

fn answer(text: &str, n: u64) -> ToolOutput {
    ToolOutput {
        output: json!({ "output": format!("{text} {n}") }).to_string(),
        summary: format!("{text} {n}"),
        success: true,
        parts: Vec::new(),
    }
}
