//! The settings of served mode.

use super::{Kind, Project, Setting};

/// Why a project has no say in it.
const OWN: Project = Project::Refused("who is served, and from where, is yours to decide");
/// Seconds of a year.
const YEAR_S: i64 = 366 * 24 * 60 * 60;

/// `[serve]`, in the order of the reference.
pub const SETTINGS: &[Setting] = &[
    Setting::new(
        "serve.listen",
        Kind::Text,
        r#""10.0.0.5:8765""#,
        "The address `aish serve` listens at; `--listen` says another one. Beyond this machine, put a TLS proxy in front of it.",
    )
    .default(r#""127.0.0.1:8765""#)
    .env("AISH_SERVE_LISTEN")
    .project(OWN),
    Setting::new(
        "serve.store",
        Kind::Text,
        r#""postgres://aish@db.example/aish""#,
        "Where sessions are kept, for several servers that share them: a PostgreSQL database. Without it, the ledger of this \
         machine. `--store` says another one; a password is safer in `AISH_SERVE_STORE`, or in the file `~/.pgpass`.",
    )
    .env("AISH_SERVE_STORE")
    .secret()
    .project(OWN),
    Setting::new(
        "serve.hosts",
        Kind::Texts,
        r#"["aish.example"]"#,
        "Further names that requests may be sent to (`Host`), besides addresses: those of a proxy in front.",
    )
    .project(OWN),
    Setting::new(
        "serve.pending_ttl_s",
        Kind::Integer(1, YEAR_S),
        "86400",
        "Seconds a turn waits for its client or for an approval. Then it is over, and an answer comes too late.",
    )
    .default("604800")
    .env("AISH_SERVE_PENDING_TTL_S")
    .project(OWN),
    Setting::new(
        "serve.strict_call_id",
        Kind::Bool,
        "true",
        "Refuse a result that names no call, or one nobody knows. Otherwise it is taken for the call that is waited for, unless it came \
         under the id of a conversation, which does not say which call is meant.",
    )
    .default("false")
    .env("AISH_SERVE_STRICT_CALL_ID")
    .project(OWN),
    Setting::new(
        "serve.turns_max",
        Kind::Integer(1, 10_000),
        "32",
        "Turns that run at once; those that wait do not count. A request beyond them is told to come again.",
    )
    .default("256")
    .env("AISH_SERVE_TURNS_MAX")
    .project(OWN),
    Setting::new(
        "serve.otlp_endpoint",
        Kind::Url,
        r#""http://127.0.0.1:4318""#,
        "An OpenTelemetry collector that traces of turns are sent to (OTLP over HTTP, JSON). They say which models and tools were \
         used, when and for how long; not what was said.",
    )
    .env("AISH_SERVE_OTLP_ENDPOINT")
    .project(OWN),
];
