//! Payloads of the Responses API to pieces: the events of a stream, or a whole response.
//!
//! An event is known by the `type` in its payload or, where a server leaves that out, by its name in the stream. What it says
//! of an item goes to [`Output`], which knows what was said before; the last event, or the body, closes the reply:
//!
//! | the response is | the reply |
//! |---|---|
//! | `completed` | is whole, see [`Output::finish`] |
//! | `incomplete`, for the length | was cut by the limit |
//! | `incomplete`, for its content | was withheld |
//! | `incomplete` for another reason, `cancelled`, or not over | was given up |
//! | `failed` | has an error |

use super::items::Marks;
use super::output::{Output, Voice};
use super::payload::{Event, Filter, Incomplete, Part, Response, read, usage};
use crate::codec::{Decoder, Finish, Piece, Sink, failure, lenient, withheld};
use crate::profile::Format;
use crate::{ErrorKind, ProviderError, sse};
use serde_json::Value;
use serde_json::value::RawValue;

/// What is remembered between the payloads of one reply.
#[derive(Debug, Default)]
pub(super) struct Reader {
    output: Output,
}

impl Decoder for Reader {
    fn event(&mut self, event: &sse::Event<'_>, sink: &mut Sink<'_>) -> Result<(), ProviderError> {
        let data = event.data.trim();
        if data.is_empty() {
            return Ok(());
        }
        if data == "[DONE]" {
            sink(Piece::Done);
            return Ok(());
        }
        let payload: Event<'_> = match lenient::payload(data) {
            Ok(payload) => payload,
            Err(_) if event.name == "error" => {
                sink(Piece::Error(failed(&Value::String(data.to_owned()))));
                return Ok(());
            }
            Err(why) => return Err(broken("an event of the stream", data, &why)),
        };
        let kind = payload.r#type.0.as_deref().filter(|kind| !kind.is_empty());
        let kind = kind.unwrap_or(&event.name).to_owned();
        if kind == "error" || payload.error.is_some() {
            let error = payload.error.map_or(data, RawValue::get);
            sink(Piece::Error(failed(&value(error))));
            return Ok(());
        }
        if payload.object.0.as_deref() == Some("response") {
            return self.close(&lenient::payload(data).unwrap_or_default(), "", sink);
        }
        self.item_event(&kind, &payload, sink)
    }

    fn body(&mut self, body: &str, sink: &mut Sink<'_>) -> Result<(), ProviderError> {
        let response: Response<'_> = lenient::payload(body).map_err(|why| broken("the reply", body, &why))?;
        if response.output.is_none() && response.status.0.is_none() && response.error.is_none() {
            sink(Piece::Error(failed(&value(body))));
            return Ok(());
        }
        self.close(&response, "completed", sink)
    }
}

impl Reader {
    fn item_event(&mut self, kind: &str, event: &Event<'_>, sink: &mut Sink<'_>) -> Result<(), ProviderError> {
        let marks = Marks {
            id: event.item_id.0.as_deref(),
            call_id: event.call_id.0.as_deref(),
            index: event.output_index.0,
        };
        let index = event.output_index.0;
        let (content, summary) = (event.content_index.0.unwrap_or(0), event.summary_index.0.unwrap_or(0));
        let delta = event.delta.0.as_deref().unwrap_or_default();
        let text = event.text.0.as_deref().unwrap_or_default();
        let output = &mut self.output;
        match kind {
            "response.output_item.added" => event.item.map_or(Ok(()), |item| output.begin(item, index, sink)),
            "response.output_item.done" => event.item.map_or(Ok(()), |item| output.end(item, index, sink)),
            // What the model says in refusing is its answer: it is read as one, and asking again would not change it.
            "response.output_text.delta" | "response.refusal.delta" => output.text(marks, content, delta, sink),
            "response.output_text.done" => output.text_end(marks, content, text, sink),
            "response.refusal.done" => {
                let refusal = event.refusal.0.as_deref().unwrap_or_default();
                output.text_end(marks, content, refusal, sink)
            }
            "response.content_part.done" => self.part_end(event, marks, content, sink),
            "response.reasoning_text.delta" | "response.reasoning.delta" => {
                output.thinking(marks, Voice::Raw, content, delta, sink)
            }
            "response.reasoning_text.done" | "response.reasoning.done" => {
                output.thinking_end(marks, Voice::Raw, content, text, sink)
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_summary.delta" => {
                output.thinking(marks, Voice::Summary, summary, delta, sink)
            }
            "response.reasoning_summary_text.done" | "response.reasoning_summary.done" => {
                output.thinking_end(marks, Voice::Summary, summary, text, sink)
            }
            "response.function_call_arguments.delta" => output.arguments(marks, delta, sink),
            "response.function_call_arguments.done" => {
                output.arguments_end(marks, event.name.0.as_deref(), event.arguments, sink)
            }
            "response.created" | "response.in_progress" | "response.queued" => {
                let response: Response<'_> = read(event.response);
                response
                    .model
                    .non_empty()
                    .into_iter()
                    .for_each(|model| sink(Piece::Model(model)));
                Ok(())
            }
            "response.completed" | "response.done" => self.close(&read(event.response), "completed", sink),
            "response.incomplete" => self.close(&read(event.response), "incomplete", sink),
            "response.failed" => self.close(&read(event.response), "failed", sink),
            "response.cancelled" => self.close(&read(event.response), "cancelled", sink),
            _ => Ok(()),
        }
    }

    /// A part of an item's content is whole. Of reasoning it says what an event of its own says too.
    fn part_end(
        &mut self,
        event: &Event<'_>,
        marks: Marks<'_>,
        place: u64,
        sink: &mut Sink<'_>,
    ) -> Result<(), ProviderError> {
        let part: Part<'_> = read(event.part);
        match part.r#type.0.as_deref() {
            Some("output_text") => self
                .output
                .text_end(marks, place, part.text.0.as_deref().unwrap_or_default(), sink),
            Some("refusal") => self
                .output
                .text_end(marks, place, part.refusal.0.as_deref().unwrap_or_default(), sink),
            _ => Ok(()),
        }
    }

    /// The response is over. `status` is what the event said of it; the response's own word counts more.
    fn close(&mut self, response: &Response<'_>, status: &str, sink: &mut Sink<'_>) -> Result<(), ProviderError> {
        if let Some(model) = response.model.0.as_deref().filter(|model| !model.is_empty()) {
            sink(Piece::Model(model.into()));
        }
        if let Some(output) = &response.output {
            self.output.whole(&output.0, sink)?;
        }
        if let Some(tokens) = response.usage {
            sink(Piece::Usage(usage(tokens)));
        }
        let status = response
            .status
            .0
            .as_deref()
            .filter(|own| !own.is_empty())
            .unwrap_or(status);
        if let Some(error) = response.error {
            sink(Piece::Error(failed(&value(error.get()))));
            return Ok(());
        }
        let finish = match status {
            "completed" => self.output.finish(),
            "incomplete" => incomplete(response, sink),
            "failed" => {
                sink(Piece::Error(failed(&Value::String("the response failed".to_owned()))));
                return Ok(());
            }
            _ => {
                sink(Piece::Reason(status.into()));
                Finish::Aborted
            }
        };
        sink(Piece::Finish(finish));
        sink(Piece::Done);
        Ok(())
    }
}

/// Why an incomplete response ends.
fn incomplete(response: &Response<'_>, sink: &mut Sink<'_>) -> Finish {
    let details: Incomplete<'_> = read(response.incomplete_details);
    let reason = details.reason.non_empty().unwrap_or("incomplete".into());
    let finish = match &*reason {
        "max_output_tokens" | "max_tokens" | "length" => return Finish::Length,
        "content_filter" => Finish::Refused,
        _ => Finish::Aborted,
    };
    let filters = response.content_filters.0.iter().map(|raw| read::<Filter>(Some(raw)));
    let results = filters.filter_map(|filter| filter.content_filter_results.0);
    let about: Vec<String> = results.flat_map(|results| withheld::filtered(&results)).collect();
    sink(Piece::Reason(withheld::reason(&reason, &about, "").into()));
    finish
}

/// What the API's own words for a failure mean, which have no status with them here (the reference, "Response object",
/// `error.code`).
fn failed(error: &Value) -> ProviderError {
    let code = error.get("code").and_then(Value::as_str).unwrap_or_default();
    let mut read = failure::of_stream(error);
    let status = match code {
        "rate_limit_exceeded" | "insufficient_quota" => 429,
        "invalid_prompt" | "invalid_request_error" | "bio_policy" | "cyber_policy" => 400,
        _ if code.contains("image") => 400,
        _ => return read,
    };
    if read.kind == ErrorKind::Stream {
        read.kind = ErrorKind::Status(status);
    }
    read
}

fn value(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_default()
}

fn broken(what: &str, text: &str, why: &str) -> ProviderError {
    crate::codec::broken(Format::OpenaiResponses, what, text, why)
}
