//! The description of the API, made from the types that requests are read into and answers are written from. What is kept in
//! `docs/openapi.json`, and served, is what this makes; `UPDATE_DOCS=1` with its test writes it anew.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::envelope::{LedgerEvent, Reply, SessionList, SessionPage};
use crate::error::{ErrorBody, ErrorKind};
use crate::query::VALUE_CHARS_MAX;
use crate::request::{ApprovalBody, ChatBody, KEY_CHARS_MAX, ToolResultBody};
use crate::routes::probes::Probe;
use crate::routes::{
    APPROVAL, CANCEL, CHAT, EVENTS, HEALTHZ, METRICS, OPENAPI, PAGE, PAGE_FILE, READYZ, ROUTES, SESSION, SESSIONS,
    TOOL_RESULT, sessions,
};
use crate::stream::{Delta, EVENT_STREAM};
use ErrorKind as Kind;
use schemars::JsonSchema;
use schemars::generate::{SchemaGenerator, SchemaSettings};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// What any request may be refused with.
const ALWAYS: [Kind; 5] = [
    Kind::BadRequest,
    Kind::Forbidden,
    Kind::HeadTooLarge,
    Kind::Internal,
    Kind::Unavailable,
];
/// What a request with a body may be.
const OF_A_BODY: [Kind; 5] = [
    Kind::MalformedJson,
    Kind::Timeout,
    Kind::TooLarge,
    Kind::UnsupportedMediaType,
    Kind::InvalidRequest,
];
/// What an answer to a call may be.
const OF_AN_ANSWER: [Kind; 10] = [
    Kind::NotFound,
    Kind::ConversationBusy,
    Kind::ReadOnly,
    Kind::AlreadyAnswered,
    Kind::OtherCall,
    Kind::WrongSort,
    Kind::NotWaiting,
    Kind::Expired,
    Kind::KeyReused,
    Kind::TooManyRequests,
];
/// What a message may be.
const OF_A_MESSAGE: [Kind; 8] = [
    Kind::NotFound,
    Kind::ConversationWaits,
    Kind::ConversationBusy,
    Kind::ReadOnly,
    Kind::UnknownModel,
    Kind::ToolNameTaken,
    Kind::KeyReused,
    Kind::TooManyRequests,
];

/// Collects schemas while operations are written.
struct Document {
    requests: SchemaGenerator,
    answers: SchemaGenerator,
    paths: Map<String, Value>,
}

/// One operation, with what it may be refused with besides.
struct Operation<'a> {
    name: &'a str,
    says: &'a str,
    parameters: Vec<Value>,
    request: Option<Value>,
    answer: Value,
    kinds: Vec<Kind>,
}

impl Document {
    fn new() -> Self {
        let settings = || {
            SchemaSettings::draft2020_12().with(|settings| {
                settings.definitions_path = "/components/schemas".into();
                settings.meta_schema = None;
            })
        };
        Self {
            requests: settings().for_deserialize().into_generator(),
            answers: settings().for_serialize().into_generator(),
            paths: Map::new(),
        }
    }

    fn request<T: JsonSchema>(&mut self) -> Option<Value> {
        let schema = self.requests.subschema_for::<T>();
        Some(json!({"required": true, "content": {"application/json": {"schema": schema}}}))
    }

    fn answer<T: JsonSchema>(&mut self, says: &str) -> Value {
        let schema = self.answers.subschema_for::<T>();
        json!({"description": says, "content": {"application/json": {"schema": schema}}})
    }

    /// Where a turn stands, or on request everything that happens until then.
    fn told(&mut self) -> Value {
        let told = "Where the turn stands: over, or waiting for a tool of the client's or for an approval.";
        let mut answer = self.answer::<Reply>(told);
        answer["content"][EVENT_STREAM] = self.stream(
            "Server-sent events: what happens in the turn, then `envelope` with what is answered without a stream, or `error`.",
        );
        answer
    }

    fn stream(&mut self, says: &str) -> Value {
        // Not referenced by an operation: what the data of its frames is.
        self.answers.subschema_for::<Delta<'_>>();
        self.answers.subschema_for::<LedgerEvent>();
        let frames = "Events of the ledger under their kind (data: `LedgerEvent`; id: its `seq`), `delta` for what has no place there \
            (data: `Delta`; no id), `envelope`, and `error` (data: `Error`).";
        // The schema is of one event, as OpenAPI 3.2 has it and readers of 3.1 take it.
        let event = json!({
            "id": {"type": "string", "pattern": "^[0-9]+(\\.e)?$"},
            "event": {"type": "string"},
            "data": {"type": "string", "contentMediaType": "application/json"},
        });
        let description = format!("{says} {frames}");
        json!({"schema": {"type": "object", "description": description, "properties": event, "required": ["event", "data"]}})
    }

    fn add(&mut self, (method, path): (&str, &str), operation: Operation<'_>) {
        let error = self.answers.subschema_for::<ErrorBody<'_>>();
        let mut by_status: BTreeMap<u16, Vec<Kind>> = BTreeMap::new();
        let is_open = crate::routes::is_open(path);
        let token = (!is_open).then_some(Kind::Unauthorized);
        for kind in ALWAYS.into_iter().chain(token).chain(operation.kinds) {
            by_status.entry(kind.status().as_u16()).or_default().push(kind);
        }
        let mut responses = Map::from_iter([("200".to_owned(), operation.answer)]);
        for (status, kinds) in by_status {
            let meanings: Vec<String> = kinds
                .iter()
                .map(|kind| format!("`{}`: {}", kind.word(), kind.meaning()))
                .collect();
            let content = json!({"application/json": {"schema": error}});
            let response = json!({"description": meanings.join("\n\n"), "content": content});
            responses.insert(status.to_string(), response);
        }
        let mut described = json!({
            "operationId": operation.name,
            "summary": operation.says,
            "parameters": operation.parameters,
            "responses": responses,
        });
        if let Some(request) = operation.request {
            described["requestBody"] = request;
        }
        if is_open {
            described["security"] = json!([]);
        }
        let methods = self.paths.entry(path).or_insert(json!({}));
        methods[method] = described;
    }

    fn finish(mut self) -> Value {
        let mut schemas = self.requests.take_definitions(true);
        schemas.extend(self.answers.take_definitions(true));
        let words: Vec<&str> = ErrorKind::ALL.iter().map(|kind| kind.word()).collect();
        schemas["ErrorDetail"]["properties"]["kind"]["enum"] = json!(words);
        json!({
            "openapi": "3.1.0",
            "info": {
                "title": "aish serve",
                "version": env!("CARGO_PKG_VERSION"),
                "description": "An agent loop that waits for its client: a call that only the client can execute is an answer, \
                    and its result goes on with the turn, exactly once.",
                "license": {"name": "MIT OR Apache-2.0"},
            },
            "security": [{"token": []}],
            "paths": self.paths,
            "components": {
                "schemas": schemas,
                "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            },
        })
    }
}

fn parameter(place: &str, name: &str, says: &str, schema: Value) -> Value {
    json!({"name": name, "in": place, "required": place == "path", "description": says, "schema": schema})
}

fn id() -> Value {
    let says = "A conversation (`conversation_id`) or a continuation (`session_id`).";
    parameter("path", "id", says, json!({"type": "string", "minLength": 1}))
}

fn key() -> Value {
    let says = "The same request again under the same key takes effect once, and is answered the same.";
    let schema = json!({"type": "string", "minLength": 1, "maxLength": KEY_CHARS_MAX, "pattern": "^[\\x21-\\x7e]+$"});
    parameter("header", "Idempotency-Key", says, schema)
}

fn number(name: &str, says: &str, (least, most): (u64, u64), usual: u64) -> Value {
    let schema = json!({"type": "integer", "minimum": least, "maximum": most, "default": usual});
    parameter("query", name, says, schema)
}

fn text(name: &str, says: &str) -> Value {
    parameter(
        "query",
        name,
        says,
        json!({"type": "string", "maxLength": VALUE_CHARS_MAX}),
    )
}

fn document() -> Value {
    let mut all = Document::new();
    conversations(&mut all);
    listings(&mut all);
    for (path, name, says) in [
        (HEALTHZ, "healthz", "Whether this process lives."),
        (
            READYZ,
            "readyz",
            "Whether it should be sent requests: it does not drain, and its ledger takes what is written.",
        ),
    ] {
        let answer = all.answer::<Probe>("Yes.");
        all.add(
            ("get", path),
            Operation {
                name,
                says,
                parameters: Vec::new(),
                request: None,
                answer,
                kinds: vec![Kind::TooLarge],
            },
        );
    }
    let answer = json!({"description": "It.", "content": {"application/json": {"schema": {"type": "object"}}}});
    all.add(
        ("get", OPENAPI),
        Operation {
            name: "openapi",
            says: "This document.",
            parameters: Vec::new(),
            request: None,
            answer,
            kinds: Vec::new(),
        },
    );
    all.finish()
}

/// What begins a turn or goes on with one.
fn conversations(all: &mut Document) {
    let (request, answer) = (all.request::<ChatBody>(), all.told());
    all.add(
        ("post", CHAT),
        Operation {
            name: "chat",
            says: "Says something, in a new conversation or in one that there is.",
            parameters: vec![key()],
            request,
            answer,
            kinds: [OF_A_BODY.as_slice(), &OF_A_MESSAGE].concat(),
        },
    );
    let (request, answer) = (all.request::<ToolResultBody>(), all.told());
    all.add(
        ("post", TOOL_RESULT),
        Operation {
            name: "tool_result",
            says: "Gives the result of a call that the client executed, and goes on.",
            parameters: vec![id(), key()],
            request,
            answer,
            kinds: [OF_A_BODY.as_slice(), &OF_AN_ANSWER, &[Kind::CallIdRequired]].concat(),
        },
    );
    let (request, answer) = (all.request::<ApprovalBody>(), all.told());
    all.add(
        ("post", APPROVAL),
        Operation {
            name: "approval",
            says: "Says whether a call may run, and goes on.",
            parameters: vec![id(), key()],
            request,
            answer,
            kinds: [OF_A_BODY.as_slice(), &OF_AN_ANSWER, &[Kind::WrongDigest]].concat(),
        },
    );
    let answer = all.answer::<Reply>("How the turn ended.");
    let empty = json!({"type": "object", "additionalProperties": false});
    all.add(
        ("post", CANCEL),
        Operation {
            name: "cancel",
            says: "Ends the turn that runs or waits: under a continuation the one that waited there, and no later one.",
            parameters: vec![id()],
            request: Some(json!({"required": false, "content": {"application/json": {"schema": empty}}})),
            answer,
            kinds: [
                OF_A_BODY.as_slice(),
                &[Kind::NotFound, Kind::ConversationBusy, Kind::ReadOnly, Kind::NotWaiting],
            ]
            .concat(),
        },
    );
}

/// What only looks.
fn listings(all: &mut Document) {
    let answer = all.answer::<SessionList>("The latest first.");
    all.add(
        ("get", SESSIONS),
        Operation {
            name: "sessions",
            says: "Lists conversations, the most recently used first.",
            parameters: vec![
                text(
                    "query",
                    "Only those in which this was said: words, or phrases in double quotes.",
                ),
                number(
                    "limit",
                    "At most so many.",
                    (1, sessions::SESSIONS_MAX),
                    sessions::SESSIONS_USUAL,
                ),
                text(
                    "before",
                    "Only those that come after this one in the list, for the next page.",
                ),
            ],
            request: None,
            answer,
            kinds: vec![Kind::InvalidRequest],
        },
    );
    let answer = all.answer::<SessionPage>("It, and its events after one place.");
    all.add(
        ("get", SESSION),
        Operation {
            name: "session",
            says: "Shows a conversation: what it does, what it waits for, and its events.",
            parameters: vec![
                id(),
                number("after", "Only events after this place.", (0, sessions::PLACE_MAX), 0),
                number(
                    "limit",
                    "At most so many events.",
                    (1, sessions::EVENTS_MAX),
                    sessions::EVENTS_USUAL,
                ),
            ],
            request: None,
            answer,
            kinds: vec![Kind::NotFound, Kind::InvalidRequest],
        },
    );
    let frames = all.stream("Server-sent events, for ever: those after one place, then each as it happens, and after each that says where the turn stands its envelope, whose id is that of the event and `.e`.");
    all.add(
        ("get", EVENTS),
        Operation {
            name: "events",
            says: "Follows a conversation as it goes on.",
            parameters: vec![
                id(),
                number("after", "Only events after this place.", (0, sessions::PLACE_MAX), 0),
                parameter(
                    "header",
                    "Last-Event-ID",
                    "The same, and before it: the id that was read last of a stream that broke. Without `.e`, the envelope of that event \
                        is sent as well.",
                    json!({"type": "string", "pattern": "^[0-9]{1,18}(\\.e)?$"}),
                ),
            ],
            request: None,
            answer: json!({"description": "What happens.", "content": {EVENT_STREAM: frames}}),
            kinds: vec![Kind::NotFound, Kind::InvalidRequest],
        },
    );
    let text = json!({"schema": {"type": "string"}});
    all.add(
        ("get", METRICS),
        Operation {
            name: "metrics",
            says: "What is counted, as Prometheus reads it.",
            parameters: Vec::new(),
            request: None,
            answer: json!({"description": "Text in the exposition format 0.0.4.", "content": {"text/plain": text}}),
            kinds: Vec::new(),
        },
    );
}

/// SPEC 9.8: what is served as the description of the API is what the types are.
#[test]
fn the_document_is_current() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/openapi.json");
    let expected = format!("{:#}\n", document());
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &expected).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap();
    assert!(
        kept == expected,
        "docs/openapi.json is out of date; run this test with UPDATE_DOCS=1"
    );
}

/// SPEC 9.8: every route is in the document, but for the page, which is for people; and every path of the document is a route.
#[test]
fn the_document_has_every_route() {
    let document = document();
    let paths = document["paths"].as_object().unwrap();
    let described: BTreeSet<&str> = paths.keys().map(String::as_str).collect();
    let routes: BTreeSet<&str> = ROUTES
        .into_iter()
        .filter(|route| ![PAGE, PAGE_FILE].contains(route))
        .collect();
    assert_eq!(described, routes);
}

/// SPEC 9.8: every reference in the document leads somewhere, and every kind of error is one that some operation may give.
#[test]
fn the_document_is_whole() {
    let document = document();
    let text = document.to_string();
    for reference in text
        .split("\"$ref\":\"#")
        .skip(1)
        .filter_map(|rest| rest.split('"').next())
    {
        assert!(document.pointer(reference).is_some(), "{reference}");
    }
    for kind in ErrorKind::ALL.iter().filter(|kind| **kind != Kind::MethodNotAllowed) {
        assert!(text.contains(&format!("`{}`: ", kind.word())), "{kind:?}");
    }
}
