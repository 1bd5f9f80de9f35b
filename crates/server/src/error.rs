//! What a request is refused with: one kind for each reason, and one shape for all of them,
//! `{"error":{"kind","message","hint"?}}` (SPEC 9.8).
//!
//! The kind is a word for programs: it never changes. The message is for whoever wrote the client; what may only be in the log is
//! the [`Cause`], which goes beside the answer and never into it.

use aish_core::id::SessionId;
use aish_engine::{EngineError, Fault, ServeError, StoreError};
use axum::body::Body;
use axum::response::{IntoResponse, Response};
use http::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use http::{HeaderName, StatusCode};
use serde::Serialize;

/// How long a client that came at a bad time is to wait before it comes again.
const RETRY_AFTER_S: u32 = 2;
/// Characters of a message: it may quote what the client wrote.
const MESSAGE_CHARS_MAX: usize = 400;

/// Among the extensions of an answer: why it is a refusal, for the log alone. It may name places and people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cause {
    /// Whose fault it is.
    pub(crate) fault: Fault,
    /// What went wrong, one line.
    pub(crate) text: String,
}

macro_rules! kinds {
    ($($(#[doc = $doc:literal])* $kind:ident $word:literal $status:ident,)*) => {
        /// Why a request is refused.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum ErrorKind {
            $($(#[doc = $doc])* $kind,)*
        }

        impl ErrorKind {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$kind,)*];

            /// As it is sent.
            pub fn word(self) -> &'static str {
                match self { $(Self::$kind => $word,)* }
            }

            /// The status that goes with it.
            pub fn status(self) -> StatusCode {
                match self { $(Self::$kind => StatusCode::$status,)* }
            }

            /// When it is sent, one line.
            pub fn meaning(self) -> &'static str {
                match self { $(Self::$kind => concat!($($doc),*).trim_ascii(),)* }
            }
        }
    };
}

kinds! {
    /// The request itself is broken: no `Host`, or a body that broke off.
    BadRequest "bad_request" BAD_REQUEST,
    /// The body is no JSON; the message says where.
    MalformedJson "malformed_json" BAD_REQUEST,
    /// The bearer token is missing or wrong.
    Unauthorized "unauthorized" UNAUTHORIZED,
    /// The request came to another host, or from another origin.
    Forbidden "forbidden" FORBIDDEN,
    /// There is no such path, session or continuation.
    NotFound "not_found" NOT_FOUND,
    /// The path is there, the method is not; `Allow` says which are.
    MethodNotAllowed "method_not_allowed" METHOD_NOT_ALLOWED,
    /// The body did not arrive in time.
    Timeout "timeout" REQUEST_TIMEOUT,
    /// The conversation waits for a call: answer or cancel it first.
    ConversationWaits "conversation_waits" CONFLICT,
    /// A turn of the conversation runs, or waits at a terminal: wait for its end or cancel it.
    ConversationBusy "conversation_busy" CONFLICT,
    /// The conversation can be read only: a newer version of aish wrote to it.
    ReadOnly "read_only" CONFLICT,
    /// Another answer came first.
    AlreadyAnswered "already_answered" CONFLICT,
    /// The `call_id` is not that of the call that waits: it is another call's, or nobody's where the call has to be named.
    OtherCall "other_call" CONFLICT,
    /// What waits is of the other sort: an approval is answered with a decision, a client's call with a result.
    WrongSort "wrong_sort" CONFLICT,
    /// The digest is not of what was shown.
    WrongDigest "wrong_digest" CONFLICT,
    /// Nothing waits for this answer: the turn was cancelled or is over.
    NotWaiting "not_waiting" CONFLICT,
    /// It waited for too long; the turn is closed.
    Expired "expired" GONE,
    /// The body is longer than is taken.
    TooLarge "too_large" PAYLOAD_TOO_LARGE,
    /// The body is not said to be JSON.
    UnsupportedMediaType "unsupported_media_type" UNSUPPORTED_MEDIA_TYPE,
    /// The body or the query does not have the shape it must have; the message names the field.
    InvalidRequest "invalid_request" UNPROCESSABLE_ENTITY,
    /// There is no model of that name.
    UnknownModel "unknown_model" UNPROCESSABLE_ENTITY,
    /// A declared tool has the name of one that runs here, or of another one.
    ToolNameTaken "tool_name_taken" UNPROCESSABLE_ENTITY,
    /// The answer must name its call: it came under a `conversation_id`, or `strict_call_id` is set.
    CallIdRequired "call_id_required" UNPROCESSABLE_ENTITY,
    /// The `Idempotency-Key` belongs to a request that said something else.
    KeyReused "idempotency_key_reused" UNPROCESSABLE_ENTITY,
    /// Too many requests are being answered; come again after `Retry-After`.
    TooManyRequests "too_many_requests" TOO_MANY_REQUESTS,
    /// The head of the request is longer than is taken.
    HeadTooLarge "head_too_large" REQUEST_HEADER_FIELDS_TOO_LARGE,
    /// Something went wrong here. The log has more, under the request's id.
    Internal "internal" INTERNAL_SERVER_ERROR,
    /// The server is about to end, cannot reach its ledger, cannot go on with the turn, or has too many bodies on their way; come again after `Retry-After`.
    Unavailable "unavailable" SERVICE_UNAVAILABLE,
}

/// A refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiError {
    kind: ErrorKind,
    message: String,
    hint: Option<String>,
    cause: Option<Cause>,
    session: Option<SessionId>,
}

/// The body of a refusal.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Error"))]
pub(crate) struct ErrorBody<'a> {
    error: ErrorDetail<'a>,
}

/// What went wrong.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct ErrorDetail<'a> {
    /// A word for programs.
    kind: &'a str,
    /// What went wrong, one line for people.
    message: &'a str,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<&'a str>,
}

impl ApiError {
    /// A refusal of that kind; the message is one line without a full stop, and cut when it is long.
    pub fn new(kind: ErrorKind, message: impl AsRef<str>) -> Self {
        Self {
            kind,
            message: message.as_ref().chars().take(MESSAGE_CHARS_MAX).collect(),
            hint: None,
            cause: None,
            session: None,
        }
    }

    /// Says what to do about it.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Says of which session it is, to the log.
    #[must_use]
    pub(crate) fn of_session(mut self, session: &SessionId) -> Self {
        self.session = Some(session.clone());
        self
    }

    /// Says why, to the log alone.
    #[must_use]
    pub(crate) fn caused(mut self, fault: Fault, text: impl Into<String>) -> Self {
        let text = text.into();
        self.cause = Some(Cause { fault, text });
        self
    }

    /// Why, as far as only the log may know.
    pub(crate) fn cause(&self) -> Option<&Cause> {
        self.cause.as_ref()
    }

    /// Its kind.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// What went wrong, one line.
    pub fn message(&self) -> &str {
        &self.message
    }

    pub(crate) fn json(&self) -> Vec<u8> {
        let error = ErrorDetail {
            kind: self.kind.word(),
            message: &self.message,
            hint: self.hint.as_deref(),
        };
        // Three texts are always JSON.
        serde_json::to_vec(&ErrorBody { error }).unwrap_or_default()
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut response = Response::new(Body::from(self.json()));
        *response.status_mut() = self.kind.status();
        // What is counted and written down: not all that is known may be said.
        response.extensions_mut().insert(self.kind);
        if let Some(cause) = self.cause {
            response.extensions_mut().insert(cause);
        }
        if let Some(session) = self.session {
            response.extensions_mut().insert(session);
        }
        let mut set = |name: HeaderName, value: HeaderValue| response.headers_mut().insert(name, value);
        set(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if matches!(self.kind, ErrorKind::TooManyRequests | ErrorKind::Unavailable) {
            set(RETRY_AFTER, HeaderValue::from(RETRY_AFTER_S));
        }
        response
    }
}

impl From<ServeError> for ApiError {
    fn from(error: ServeError) -> Self {
        let refused = |kind| Self::new(kind, error.to_string());
        match &error {
            ServeError::Unknown(_) => refused(ErrorKind::NotFound),
            ServeError::NotWaiting(_) | ServeError::Ended(_) => refused(ErrorKind::NotWaiting),
            ServeError::AnsweredOtherwise(_) => refused(ErrorKind::AlreadyAnswered),
            ServeError::Expired(_) => refused(ErrorKind::Expired),
            ServeError::OtherCall { .. } => refused(ErrorKind::OtherCall),
            ServeError::OtherAnswer { .. } | ServeError::Asks(_) => refused(ErrorKind::WrongSort),
            ServeError::Digest(_) => refused(ErrorKind::WrongDigest).hint("show the call again and quote its digest"),
            ServeError::Waiting(_) => refused(ErrorKind::ConversationWaits),
            ServeError::Running(_) | ServeError::AtTerminal(_) => refused(ErrorKind::ConversationBusy),
            ServeError::KeyReused => refused(ErrorKind::KeyReused).hint("make a new key for each request"),
            ServeError::Busy(_) => refused(ErrorKind::TooManyRequests),
            ServeError::Draining => refused(ErrorKind::Unavailable),
            ServeError::Tool { .. } => refused(ErrorKind::InvalidRequest),
            ServeError::ToolTaken { .. } => refused(ErrorKind::ToolNameTaken),
            ServeError::CallUnnamed(_) => refused(ErrorKind::CallIdRequired),
            ServeError::Model(_) => refused(ErrorKind::UnknownModel),
            ServeError::Stopped(problem) => Self::new(ErrorKind::Unavailable, "the turn could not go on here")
                .hint("send the same request again: what is in the ledger counts")
                .caused(Fault::Other, problem),
            ServeError::Engine(error) => Self::from_engine(error),
        }
    }
}

impl ApiError {
    fn from_engine(error: &EngineError) -> Self {
        let refused = |kind| Self::new(kind, error.to_string());
        match error {
            EngineError::ReadOnly(_) => refused(ErrorKind::ReadOnly),
            EngineError::Invalid { session, .. } | EngineError::LeaseLost(session) => Self::new(
                ErrorKind::ConversationBusy,
                format!("somebody else goes on with session {session}"),
            ),
            EngineError::NoOpenTurn(_) | EngineError::NotPending(_) => refused(ErrorKind::NotWaiting),
            EngineError::Asks(_) => refused(ErrorKind::WrongSort),
            EngineError::Digest(_) => refused(ErrorKind::WrongDigest),
            EngineError::AnsweredOtherwise(_) => refused(ErrorKind::AlreadyAnswered),
            EngineError::Model(_) => refused(ErrorKind::UnknownModel),
            EngineError::Paused(_) => ServeError::Draining.into(),
            // Coming again does not mend it.
            EngineError::Store(StoreError::Format(problem)) => {
                Self::new(ErrorKind::Internal, "what the ledger holds there cannot be read")
                    .caused(Fault::Other, problem)
            }
            EngineError::Store(failed) => Self::new(ErrorKind::Unavailable, "the ledger cannot be read or written now")
                .caused(Fault::of(error), failed.to_string()),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// SPEC 9.8: one shape, one word for each kind, and a status that says that it is a refusal.
    #[test]
    fn one_shape() {
        let mut words = Vec::new();
        for kind in ErrorKind::ALL {
            assert!(kind.status().is_client_error() || kind.status().is_server_error());
            assert!(!words.contains(&kind.word()), "{kind:?}");
            assert!(!kind.meaning().is_empty() && !kind.meaning().contains('\n'), "{kind:?}");
            words.push(kind.word());
            let error = ApiError::new(*kind, "a \"line\"").hint("do it");
            let expected =
                serde_json::json!({"error": {"kind": kind.word(), "message": "a \"line\"", "hint": "do it"}});
            assert_eq!(
                serde_json::from_slice::<serde_json::Value>(&error.json()).unwrap(),
                expected
            );
        }
        let bare = ApiError::new(ErrorKind::Expired, "gone").json();
        assert_eq!(bare, br#"{"error":{"kind":"expired","message":"gone"}}"#);
    }
}
