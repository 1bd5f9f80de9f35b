//! Sums, words and the warning, over ledgers made by hand.
#![allow(clippy::unwrap_used)]

use super::*;
use aish_core::event::{Assistant, Draft, ReplyStop};
use aish_core::id::{ReplyId, SessionId};
use aish_engine::Model;
use aish_provider::scripted::Scripted;

fn prices() -> Prices {
    Prices::builtin()
}

fn reply(turn: u64, model: Option<&str>, said: Option<&str>, tokens: [u64; 3]) -> [Draft; 2] {
    let data = Assistant {
        reply_id: ReplyId::nth(turn, 1),
        parts: Vec::new(),
        model: model.map(str::to_owned),
        attempt: 1,
        stop: ReplyStop::End,
        context_seq: 0,
        reason: None,
        fallback: None,
    };
    let [input_tokens, cached_tokens, output_tokens] = tokens;
    let usage = Usage {
        input_tokens,
        cached_tokens,
        output_tokens,
        model: said.map(str::to_owned),
        ..Usage::default()
    };
    [
        Draft::new(turn, "hello", Body::Assistant(data)),
        Draft::new(turn, "tokens", Body::Usage(usage)),
    ]
}

fn events(replies: impl IntoIterator<Item = [Draft; 2]>) -> Vec<Event> {
    let id = SessionId::from_parts(0, 7);
    let drafts = replies.into_iter().flatten();
    (1..).zip(drafts).map(|(seq, draft)| draft.place(&id, seq, 0)).collect()
}

fn fill(used_tokens: u64, window_tokens: Option<u64>) -> Option<ContextFill> {
    Some(ContextFill {
        used_tokens,
        window_tokens,
    })
}

/// The line after a turn leaves out what is not known; a price that nobody knows is no zero.
#[test]
fn lines() {
    let check = |replies: Vec<[Draft; 2]>, fill, expect: Option<&str>| {
        let tally = Tally::of(&events(replies), &prices());
        assert_eq!(tally.line(fill).as_deref(), expect);
    };
    let cloud = |tokens| reply(1, Some("openai/gpt-4o"), Some("gpt-4o-2024-08-06"), tokens);
    let local = |tokens| reply(1, Some("ollama/qwen3"), Some("qwen3"), tokens);
    let odd = |tokens| reply(1, Some("odd/odd"), Some("odd"), tokens);
    check(
        vec![cloud([1_204, 900, 310])],
        fill(11_141, Some(32_768)),
        Some("1,204 in (900 cached) · 310 out · $0.0050 · context 33% of 32,768"),
    );
    check(
        vec![local([1_204, 0, 310])],
        fill(1_514, None),
        Some("1,204 in · 310 out"),
    );
    check(vec![odd([12, 0, 3])], None, Some("12 in · 3 out"));
    check(vec![local([10, 0, 5]), odd([10, 0, 5])], None, Some("20 in · 10 out"));
    check(
        vec![cloud([1_000_000, 0, 0]), odd([10, 0, 5])],
        None,
        Some("1,000,010 in · 5 out · at least $2.50"),
    );
    check(vec![cloud([10, 0, 0])], None, Some("10 in · 0 out · under $0.0001"));
    check(Vec::new(), fill(0, Some(10)), None);
}

/// A session is told by model, over all its turns; a column in which nothing happened is not there.
#[test]
fn reports() {
    let events = events([
        reply(1, Some("openai/gpt-4o"), Some("gpt-4o"), [1_000, 500, 100]),
        reply(2, Some("ollama/qwen3"), Some("qwen3"), [2_000, 0, 50]),
        reply(3, Some("openai/gpt-4o"), Some("gpt-4o"), [3_000, 0, 200]),
        reply(3, None, None, [1, 0, 1]),
    ]);
    let session = Tally::of(&events, &prices());
    let turn = Tally::of_turn(&events, 3, &prices());
    insta::assert_snapshot!(report(&turn, &session, fill(3_200, Some(8_192))), @"
                     replies     in  cached  out              cost
      last turn            2  3,001       0  201  at least $0.0095
      openai/gpt-4o        2  4,000     500  300           $0.0124
      ollama/qwen3         1  2,000       0   50
      (not named)          1      1       0    1
      session              4  6,001     500  351  at least $0.0124
      context: 3,200 tokens, 39% of 8,192
    ");
    assert_eq!(
        report(&Tally::default(), &Tally::default(), None),
        "no reply has been counted yet\n"
    );
}

/// A server may count anything.
#[test]
fn absurd_counts() {
    let events = events([
        reply(1, None, Some("gpt-4o"), [u64::MAX, u64::MAX, u64::MAX]),
        reply(1, None, Some("gpt-4o"), [u64::MAX, u64::MAX, u64::MAX]),
    ]);
    let tally = Tally::of(&events, &prices());
    assert!(
        tally
            .line(fill(u64::MAX, Some(0)))
            .unwrap()
            .starts_with("18,446,744,073,709,551,615 in")
    );
}

struct OneModel(Option<u64>);

impl Models for OneModel {
    fn model(&self, name: &str) -> Result<Model, String> {
        Ok(Model {
            name: name.to_owned(),
            asked_for: None,
            provider: Arc::new(Scripted::new(Vec::new())),
            context_window: self.0,
            max_output_tokens: None,
            images: true,
            fallback: Vec::new(),
        })
    }
}

/// The warning comes once, and again when the context had emptied in between; never without a window.
#[test]
fn warnings() {
    let told = |window, used: &[u64]| -> Vec<bool> {
        let mut gauge = Gauge::new(Arc::new(OneModel(window)));
        let asking = Notice::Asking { model: "desk".into() };
        assert_eq!(gauge.notice(&asking), None);
        let usage = |used| {
            Notice::Usage(Usage {
                input_tokens: used - 1,
                output_tokens: 1,
                ..Usage::default()
            })
        };
        used.iter().map(|used| gauge.notice(&usage(*used)).is_some()).collect()
    };
    assert_eq!(
        told(Some(1_000), &[799, 800, 990, 100, 2_000]),
        [false, true, false, false, true]
    );
    assert_eq!(told(None, &[1_000_000]), [false]);
}
