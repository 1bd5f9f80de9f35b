//! Who is told what a server does: the log on stderr, and a collector of traces.

use crate::cli::LogForm;
use crate::failure::Failure;
use crate::models::Registry;
use aish_provider::profile::Format;
use aish_server::{Log, Traces};
use futures_util::FutureExt as _;
use std::sync::Arc;

/// Where collectors take traces, below the address they are known by (OpenTelemetry protocol, OTLP/HTTP).
const TRACES_PATH: &str = "/v1/traces";

/// A log on stderr, if one is wanted.
///
/// # Errors
/// There can be no further thread.
pub fn log(form: Option<LogForm>) -> Result<Option<Log>, Failure> {
    let form = match form {
        None => return Ok(None),
        Some(LogForm::Json) => aish_server::LogForm::Json,
        Some(LogForm::Text) => aish_server::LogForm::Text,
    };
    let log = Log::new(form, std::io::stderr());
    let log = log.map_err(|error| Failure::failed(format!("cannot begin a log: {error}")))?;
    Ok(Some(log))
}

/// Traces to the collector at this address, by the client that asks models: its proxies and certificates hold here as well.
///
/// # Errors
/// There is no such client.
pub fn traces(endpoint: Option<&str>, registry: &Arc<Registry>) -> Result<Option<Traces>, Failure> {
    let Some(endpoint) = endpoint else {
        return Ok(None);
    };
    let url = traces_url(endpoint);
    let client = registry.client().map_err(Failure::failed)?;
    let send = move |body: Vec<u8>| {
        let request = client.post(&url).header("content-type", "application/json").body(body);
        async move {
            let response = request.send().await.map_err(|error| error.to_string())?;
            let status = response.status();
            if status.is_success() {
                Ok(())
            } else {
                Err(status.to_string())
            }
        }
        .boxed()
    };
    let models = Arc::clone(registry);
    let provider = move |model: &str| {
        models.known(model).map(|choice| match choice.profile.format {
            Format::OpenaiChat | Format::OpenaiResponses => "openai",
            Format::Anthropic => "anthropic",
            Format::Gemini => "gcp.gemini",
        })
    };
    Ok(Some(Traces::new(send, provider)))
}

fn traces_url(endpoint: &str) -> String {
    let base = endpoint.trim_end_matches('/');
    if base.ends_with(TRACES_PATH) {
        base.to_owned()
    } else {
        format!("{base}{TRACES_PATH}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        for (given, expect) in [
            ("http://127.0.0.1:4318", "http://127.0.0.1:4318/v1/traces"),
            ("http://127.0.0.1:4318/", "http://127.0.0.1:4318/v1/traces"),
            ("https://otel.example/aish", "https://otel.example/aish/v1/traces"),
            ("https://otel.example/v1/traces", "https://otel.example/v1/traces"),
        ] {
            assert_eq!(traces_url(given), expect);
        }
    }
}
