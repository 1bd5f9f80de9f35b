//! What the gate's judgement of a command costs: taking it apart, and holding its parts against 60 rules (SPEC 5.7, 11).
#![allow(clippy::unwrap_used, missing_docs)]

use aish_core::event::CallSource;
use aish_core::policy::{ApprovalMode, Judgement, Policy, Rule, SoFar};
use aish_tools::set::ToolSet;
use aish_tools::{Hidden, ToolContext};
use divan::Bencher;
use serde_json::json;
use std::sync::Arc;

/// Rules of each kind.
const RULES: usize = 20;
const KIB: usize = 1024;

fn main() {
    divan::main();
}

fn rules(program: &str) -> Vec<Rule> {
    (0..RULES)
        .map(|n| Rule::parse(&format!("bash({program} word{n} *)")).unwrap())
        .collect()
}

fn judge(tools: &ToolSet, context: &ToolContext, policy: &Policy, line: &str) -> Judgement {
    let tool = tools.get("bash").unwrap();
    let action = tool.inspect(&json!({ "command": line }), context).unwrap();
    policy.judge(&action, CallSource::Builtin, ApprovalMode::Ask, SoFar::default())
}

fn measure(bencher: Bencher<'_, '_>, line: &str) {
    let tools = ToolSet::builtin();
    let context = ToolContext {
        directory: "/tmp".into(),
        environment: Arc::default(),
        output_bytes_max: KIB,
        hidden: Hidden::default(),
        web: aish_tools::WebAccess::default(),
        place: None,
    };
    let policy = Policy {
        deny: rules("rm"),
        ask: rules("git push"),
        allow: rules("cargo"),
        ..Policy::new("/tmp")
    };
    bencher.bench(|| judge(&tools, &context, &policy, divan::black_box(line)));
}

#[divan::bench(args = ["ls -la", "cd src && cargo test --all 2>&1 | tail -n 20"])]
fn usual_line(bencher: Bencher<'_, '_>, line: &str) {
    measure(bencher, line);
}

/// A command of that many KiB, of many short ones.
#[divan::bench(args = [4, 64])]
fn long_line_kib(bencher: Bencher<'_, '_>, kib: usize) {
    let piece = "grep -n 'a word' \"$file\" | sort >> out; ";
    measure(bencher, &piece.repeat(kib * KIB / piece.len()));
}
