//! The quirk corpus (SPEC 7.4): streams of real servers, each with the report that taught us and the reply it means.
//!
//! A case is a file below `corpus/`, see [`case`]; it is read as it was sent and in every way in which it may arrive
//! ([`arrivals`]), and it is cut at every byte. A case is never weakened to pass.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use aish_provider::assemble::Ending;
use aish_provider::profile::Format;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

#[path = "corpus/alike.rs"]
mod alike;
#[path = "corpus/arrivals.rs"]
mod arrivals;
#[path = "corpus/case.rs"]
mod case;
#[path = "corpus/floods.rs"]
mod floods;
#[path = "corpus/random.rs"]
mod random;
#[path = "corpus/reading.rs"]
mod reading;

use case::Case;
use reading::{Ear, Heard, read};

/// How many cases there are at least, of each format and together.
const CASES_MIN: [(Format, usize); 4] = [
    (Format::OpenaiChat, 70),
    (Format::OpenaiResponses, 20),
    (Format::Anthropic, 20),
    (Format::Gemini, 20),
];
const CASES_MIN_TOGETHER: usize = 140;

/// Every case names the report it comes from, and says something no other says.
#[test]
fn cases_have_sources() {
    let all = Case::all();
    for (format, min) in CASES_MIN {
        let count = all.iter().filter(|case| case.format == format).count();
        assert!(count >= min, "{}: {count} cases", format.name());
    }
    assert!(all.len() >= CASES_MIN_TOGETHER, "{} cases", all.len());
    for case in &all {
        assert!(case.source.starts_with("https://"), "{}: {}", case.name, case.source);
        assert!(!case.quirk.is_empty(), "{}", case.name);
    }
    let streams: BTreeSet<&[u8]> = all.iter().map(|case| case.body.as_slice()).collect();
    assert_eq!(streams.len(), all.len(), "two cases have the same stream");
}

/// Runs a check over the cases of a format and names all that fail.
fn each_case(format: Format, check: impl Fn(&Case) + std::panic::RefUnwindSafe) {
    let failed: Vec<String> = Case::of(format)
        .into_iter()
        .filter(|case| std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| check(case))).is_err())
        .map(|case| case.name)
        .collect();
    assert!(
        failed.is_empty(),
        "{} cases failed:\n  {}",
        failed.len(),
        failed.join("\n  ")
    );
}

fn hear(case: &Case, chunks: &[Vec<u8>]) -> Heard {
    read(case.format, &case.tools, chunks.iter().map(Vec::as_slice))
}

fn means_what_it_should(case: &Case) {
    for arrival in arrivals::of(&case.body) {
        case.check(&hear(case, &arrival.chunks), &arrival.how);
    }
}

/// SPEC 7.3, 12: whatever was cut off, no call counts before the stream said that it is whole, and none but those that the
/// whole stream has.
fn cut_anywhere_runs_nothing(case: &Case) {
    let whole = read(case.format, &case.tools, [case.body.as_slice()]);
    let whole_at = case.whole_at();
    for cut in 0..case.body.len() {
        let heard = read(case.format, &case.tools, [&case.body[..cut]]);
        if heard.has_calls() {
            assert!(cut > whole_at, "{} cut at {cut}: {heard:#?}", case.name);
            assert_eq!(heard.reply.calls, whole.reply.calls, "{} cut at {cut}", case.name);
        }
    }
    let mut ear = Ear::new(case.format, &case.tools);
    ear.hear(&case.body);
    let broken = ear.end(Ending::Cut);
    assert!(
        !broken.has_calls(),
        "{} after a broken connection: {broken:#?}",
        case.name
    );
}

/// Streams that a real llama.cpp sent, by the API it was asked through: they come in every way too, and mean the same.
const RECORDINGS: [(Format, &str); 3] = [
    (Format::OpenaiChat, "llamacpp"),
    (Format::OpenaiResponses, "llamacpp-responses"),
    (Format::Anthropic, "llamacpp-messages"),
];

/// SPEC 7.3, 7.4: recordings of a real server mean the same however they arrive, and cut ones run nothing.
#[test]
fn recordings_arrive_in_every_way() {
    let tools = ["weather.get", "time.now"].map(str::to_owned);
    for (format, folder) in RECORDINGS {
        let streams = recordings(folder);
        assert!(streams.len() >= 2, "{folder}");
        for (name, stream) in streams {
            let whole = read(format, &tools, [stream.as_slice()]).reply;
            for arrival in arrivals::of(&stream) {
                let heard = read(format, &tools, arrival.chunks.iter().map(Vec::as_slice));
                assert_eq!(heard.reply, whole, "{name}, {}", arrival.how);
            }
            let step = 1 + stream.len() / CUTS;
            for cut in (0..stream.len()).step_by(step) {
                let heard = read(format, &tools, [&stream[..cut]]);
                assert!(
                    !heard.has_calls() || heard.reply.calls == whole.calls,
                    "{name} cut at {cut}"
                );
                assert!(!heard.has_calls() || cut > stream.len() / 2, "{name} cut at {cut}");
            }
        }
    }
}

/// Where a recording is cut: at so many places.
const CUTS: usize = 400;

fn recordings(folder: &str) -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures")
        .join(folder);
    let files = fs::read_dir(&folder).unwrap().map(|file| file.unwrap().path());
    let mut streams: Vec<PathBuf> = files
        .filter(|path| path.extension().is_some_and(|end| end == "sse"))
        .collect();
    streams.sort();
    let named = streams
        .iter()
        .map(|path| (path.display().to_string(), fs::read(path).unwrap()));
    named.collect()
}

macro_rules! formats {
    ($($test:ident $format:ident)*) => { $(
        mod $test {
            use super::*;

            /// SPEC 7.3, 7.4: each stream means the same however it arrives.
            #[test]
            fn streams_mean_what_they_should() {
                each_case(Format::$format, means_what_it_should);
            }

            /// SPEC 7.3, 12: a truncated call is never executed.
            #[test]
            fn cut_streams_run_nothing() {
                each_case(Format::$format, cut_anywhere_runs_nothing);
            }
        }
    )* };
}

formats! {
    openai_chat OpenaiChat
    openai_responses OpenaiResponses
    anthropic Anthropic
    gemini Gemini
}
