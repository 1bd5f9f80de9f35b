//! `aish doctor`: everything aish needs, looked at one by one; each a line that says how it is and what to do.
//!
//! A [`Finding`] is one such line. [`machine`] looks at this machine, `models` asks models' servers, `servers` those of tools.
//! Nothing is changed but what is remembered of servers, no value of a key is shown, and all of it ends within
//! [`TOTAL_TIMEOUT_S`] seconds, because whoever asks is waiting. It works where the configuration does not: that is what it is
//! asked for most.

use crate::app::App;
use crate::cli::{Common, Output};
use crate::failure::{DONE, FAILED, Failure};
use crate::json;
use crate::paths::{Environment, Paths};
use crate::sessions::print;
use aish_core::sanitize;
use futures_util::future::join4;
use serde_json::{Value, json};
use std::time::Duration;

mod machine;
mod models;
mod servers;

/// Seconds that all of it may take. Each server has less, see `models`.
const TOTAL_TIMEOUT_S: u64 = 9;

/// Columns of the area's name.
const AREA_COLUMNS: usize = 13;

/// Whether a model is asked a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Question {
    /// It is; that costs a few tokens.
    Asked,
    /// It is not.
    Skipped,
}

/// How something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// As it should be, or worth knowing and no more.
    Ok,
    /// Something does less than it could.
    Warn,
    /// Something will not work.
    Fail,
}

impl Verdict {
    fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warn => "warn",
            Self::Fail => "FAIL",
        }
    }
}

/// One line of the answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What was looked at, in one word.
    pub area: &'static str,
    /// How it is.
    pub verdict: Verdict,
    /// What was found.
    pub message: String,
    /// What to do; empty where nothing is to be done.
    pub advice: String,
}

impl Finding {
    /// It is as it should be.
    pub fn ok(area: &'static str, message: impl Into<String>) -> Self {
        Self {
            area,
            verdict: Verdict::Ok,
            message: message.into(),
            advice: String::new(),
        }
    }

    /// It does less than it could.
    pub fn warn(area: &'static str, message: impl Into<String>, advice: impl Into<String>) -> Self {
        Self {
            verdict: Verdict::Warn,
            advice: advice.into(),
            ..Self::ok(area, message)
        }
    }

    /// It will not work.
    pub fn fail(area: &'static str, message: impl Into<String>, advice: impl Into<String>) -> Self {
        Self {
            verdict: Verdict::Fail,
            advice: advice.into(),
            ..Self::ok(area, message)
        }
    }

    fn line(&self) -> String {
        let advice = if self.advice.is_empty() { "" } else { "; " };
        let said = format!("{}{advice}{}", self.message, self.advice);
        format!(
            "{:<4}  {:<AREA_COLUMNS$}  {}\n",
            self.verdict.word(),
            self.area,
            sanitize::single_line(&said)
        )
    }

    fn json(&self) -> Value {
        json!({
            "area": self.area,
            "verdict": self.verdict.word().to_lowercase(),
            "message": self.message,
            "advice": self.advice,
        })
    }
}

/// Looks at everything and prints what was found. Exit code 0 unless something will not work.
///
/// # Errors
/// Standard output is gone, or the directory of `--cd` is not there.
pub async fn run(common: &Common, question: Question) -> Result<u8, Failure> {
    let environment = Environment::of_process();
    let (mut findings, app) = match App::load(common) {
        Ok(app) => (Vec::new(), Some(app)),
        Err(failure) => {
            let mut lines = failure.message().lines();
            let message = lines.next().unwrap_or_default().to_owned();
            let more = lines.filter(|line| !line.starts_with(' ')).count();
            let more = if more == 0 {
                String::new()
            } else {
                format!(" (and {more} more)")
            };
            let advice = "correct it; `aish config show` shows all of it";
            (vec![Finding::fail("config", format!("{message}{more}"), advice)], None)
        }
    };
    let paths = match &app {
        Some(app) => Some(app.paths.clone()),
        None => std::env::current_dir()
            .ok()
            .and_then(|cwd| Paths::find(&environment, common.config.as_deref(), &cwd).ok()),
    };
    findings.extend(app.iter().flat_map(machine::configuration));
    let ledger = async {
        match &paths {
            Some(paths) => machine::data(paths).await,
            None => Vec::new(),
        }
    };
    let served = async {
        match &app {
            Some(app) => machine::served(app).await,
            None => None,
        }
    };
    let asked = async {
        match &app {
            Some(app) => models::all(app, question).await,
            None => Vec::new(),
        }
    };
    let connected = async {
        match &app {
            Some(app) => servers::all(app).await,
            None => Vec::new(),
        }
    };
    let limit = Duration::from_secs(TOTAL_TIMEOUT_S);
    match tokio::time::timeout(limit, join4(ledger, served, asked, connected)).await {
        Ok((ledger, served, asked, connected)) => {
            findings.extend(ledger.into_iter().chain(served).chain(asked).chain(connected));
        }
        Err(_) => findings.push(Finding::fail(
            "time",
            format!("the ledger or a server did not answer within {TOTAL_TIMEOUT_S} s"),
            "is the disk busy or the network slow? try again",
        )),
    }
    findings.extend(machine::surroundings(&environment));
    findings.extend(app.iter().filter_map(machine::project));
    let redactor = app.as_ref().map(App::redactor);
    for finding in &mut findings {
        if let Some(redactor) = &redactor {
            finding.message = redactor.redact(&finding.message).into_owned();
            // What to do may repeat what other servers said.
            finding.advice = redactor.redact(&finding.advice).into_owned();
        }
    }
    report(&findings, common.output)
}

fn report(findings: &[Finding], output: Output) -> Result<u8, Failure> {
    let is_well = !findings.iter().any(|finding| finding.verdict == Verdict::Fail);
    let text = match output {
        Output::Text => findings.iter().map(Finding::line).collect(),
        Output::Json => {
            let checks: Vec<Value> = findings.iter().map(Finding::json).collect();
            format!("{}\n", json!({"ok": is_well, "checks": checks}))
        }
        Output::Jsonl => findings.iter().map(|finding| format!("{}\n", finding.json())).collect(),
    };
    print(&match output {
        Output::Text => text.into(),
        Output::Json | Output::Jsonl => json::printable(&text),
    })?;
    Ok(if is_well { DONE } else { FAILED })
}
