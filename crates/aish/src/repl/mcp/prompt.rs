//! `:alias.prompt key=value …`: a prompt of a server, filled in and asked as the person's own question (SPEC 6.9).

use super::unknown_server;
use super::words::{Beginning, Word, split};
use crate::mcp::prompts::{Question, question, usage};
use crate::repl::{Next, Repl, ReplError};
use aish_core::sanitize;
use aish_mcp::{Argument, Filled, Prompt};
use serde_json::{Map, Value};
use std::sync::Arc;

/// Lines of a filled prompt that are shown.
const SHOWN_LINES_MAX: usize = 40;
/// Characters of them.
const SHOWN_CHARS_MAX: usize = 4_000;
/// Characters of what a server says an argument means.
const MEANING_CHARS_MAX: usize = 200;
/// Before what is asked in the person's name.
const SAID_MARK: &str = "❯";

/// What a person gave a prompt.
#[derive(Debug, PartialEq)]
struct Given<'a> {
    arguments: Map<String, Value>,
    /// What it cannot do without, and does not have.
    missing: Vec<&'a Argument>,
}

impl Repl {
    /// Asks the prompt that a line names.
    pub(in crate::repl) async fn ask_prompt(&mut self, line: &str) -> Result<Next, ReplError> {
        let question = match self.prompt_question(line).await {
            Ok(question) => question,
            Err(problem) => {
                self.front.say(&problem).await;
                return Ok(Next::Prompt);
            }
        };
        for remark in &question.remarks {
            self.front.say(remark).await;
        }
        let shown = beginning(&question.text);
        self.front
            .draw(|renderer, out| renderer.said(SAID_MARK, &shown, out))
            .await;
        let end = self.say_to_model(&question.text, question.parts).await?;
        Ok(self.turn_ended(end))
    }

    /// What the prompt that a line names asks.
    ///
    /// # Errors
    /// One line that says why nothing is asked.
    async fn prompt_question(&mut self, line: &str) -> Result<Question, String> {
        let mut words = split(line).map_err(|error| error.to_string())?.into_iter();
        let label = words.next().map(|word| word.text).unwrap_or_default();
        let words: Vec<Word> = words.collect();
        // Names are split at the first dot (SPEC 6.4); a line without one does not come here.
        let (alias, name) = label.split_once('.').unwrap_or((&label, ""));
        let mcp = Arc::clone(&self.options.mcp);
        if mcp.servers().get(alias).is_none() {
            return Err(unknown_server(alias));
        }
        let fetched = self.unless_cancelled(mcp.prompts(alias)).await;
        let prompts = fetched.ok_or("stopped")?.map_err(|error| told(alias, &error.message))?;
        let prompt = prompts.items.iter().find(|prompt| prompt.name == name);
        let prompt = prompt.ok_or_else(|| format!("there is no prompt {label}; :mcp prompts {alias} lists them"))?;
        let Given {
            mut arguments, missing, ..
        } = given(prompt, &words)
            .map_err(|problem| format!("{problem}; {} is how it is written", usage(alias, prompt)))?;
        for argument in missing {
            let answer = self.ask_line(&asking(&label, argument)).await;
            match answer.map(|line| line.trim().to_owned()) {
                Some(text) if !text.is_empty() => arguments.insert(argument.name.clone(), Value::String(text)),
                Some(_) | None => {
                    let wanted = &argument.name;
                    return Err(format!(
                        "not asked: {wanted} is missing; {} is how it is written",
                        usage(alias, prompt)
                    ));
                }
            };
        }
        let filled = self.unless_cancelled(mcp.fill(alias, name, arguments)).await;
        let filled: Filled = filled.ok_or("stopped")?.map_err(|error| told(&label, &error.message))?;
        question(&label, filled).ok_or_else(|| format!("not asked: there is nothing in {label}"))
    }
}

fn told(what: &str, problem: &str) -> String {
    let problem: String = problem.chars().take(super::PROBLEM_CHARS_MAX).collect();
    format!("not asked: {what}: {problem}")
}

/// `alias.name: city (which one): `, safe for a terminal.
fn asking(label: &str, argument: &Argument) -> String {
    let meaning: String = argument.description.trim().chars().take(MEANING_CHARS_MAX).collect();
    let meaning = if meaning.is_empty() {
        meaning
    } else {
        format!(" ({meaning})")
    };
    let line = format!("{label}: {}{meaning}: ", argument.name);
    sanitize::single_line(&line).into_owned()
}

/// Gives the words of a line to the arguments of a prompt: `key=value` by name, all others in order, those that the prompt
/// cannot do without first.
///
/// # Errors
/// A word has no argument: what is wrong with it.
fn given<'a>(prompt: &'a Prompt, words: &[Word]) -> Result<Given<'a>, String> {
    let mut arguments = Map::new();
    let mut unnamed = Vec::new();
    for word in words {
        match word.text.split_once('=').filter(|_| word.beginning == Beginning::Bare) {
            Some((name, value)) if prompt.arguments.iter().any(|argument| argument.name == name) => {
                if arguments.insert(name.to_owned(), Value::from(value)).is_some() {
                    return Err(format!("{name} is given twice"));
                }
            }
            Some((name, _)) if is_name(name) => {
                return Err(format!(
                    "it has no argument {name} (a word in quotes is taken as it is)"
                ));
            }
            Some(_) | None => unnamed.push(word.text.as_str()),
        }
    }
    let (required, optional): (Vec<&Argument>, Vec<&Argument>) =
        prompt.arguments.iter().partition(|argument| argument.is_required);
    let open: Vec<&Argument> = required
        .iter()
        .chain(&optional)
        .copied()
        .filter(|argument| !arguments.contains_key(&argument.name))
        .collect();
    if unnamed.len() > open.len() {
        let surplus = unnamed.get(open.len()).copied().unwrap_or_default();
        return Err(format!("there is no argument left for {surplus:?}"));
    }
    for (argument, value) in open.iter().zip(&unnamed) {
        arguments.insert(argument.name.clone(), Value::from(*value));
    }
    let missing = required
        .into_iter()
        .filter(|argument| !arguments.contains_key(&argument.name))
        .collect();
    Ok(Given { arguments, missing })
}

fn is_name(text: &str) -> bool {
    !text.is_empty()
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
}

/// As much of a text as is shown of it.
fn beginning(text: &str) -> String {
    let chars: String = text.chars().take(SHOWN_CHARS_MAX).collect();
    let lines: Vec<&str> = chars.lines().take(SHOWN_LINES_MAX).collect();
    let mut shown = lines.join("\n");
    let left = text.lines().count().saturating_sub(lines.len());
    if left > 0 {
        shown.push_str(&format!("\n… {left} more lines"));
    } else if chars.len() < text.len() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::mcp::prompts::typed;
    use proptest::prelude::*;

    fn prompt() -> Prompt {
        let argument = |name: &str, is_required| Argument {
            name: name.to_owned(),
            description: String::new(),
            is_required,
        };
        Prompt {
            name: "p".to_owned(),
            description: String::new(),
            arguments: vec![argument("mood", false), argument("city", true), argument("day", true)],
        }
    }

    fn check(line: &str, expect: &[(&str, &str)], missing: &[&str]) {
        let prompt = prompt();
        let words = split(line).unwrap();
        let given = given(&prompt, &words).unwrap();
        let expect: Map<String, Value> = expect
            .iter()
            .map(|(name, value)| ((*name).to_owned(), Value::from(*value)))
            .collect();
        assert_eq!(given.arguments, expect, "{line:?}");
        let names: Vec<&str> = given.missing.iter().map(|argument| argument.name.as_str()).collect();
        assert_eq!(names, missing, "{line:?}");
    }

    /// SPEC 6.9: words fill what a prompt cannot do without first, in its order; names choose.
    #[test]
    fn arguments() {
        check("", &[], &["city", "day"]);
        check("Rome", &[("city", "Rome")], &["day"]);
        check(
            "Rome today good",
            &[("city", "Rome"), ("day", "today"), ("mood", "good")],
            &[],
        );
        check("day=today Rome", &[("city", "Rome"), ("day", "today")], &[]);
        check(
            r#"city="New York" mood="#,
            &[("city", "New York"), ("mood", "")],
            &["day"],
        );
        check(r#"'x=1' 2+2=4"#, &[("city", "x=1"), ("day", "2+2=4")], &[]);
    }

    proptest! {
        /// SPEC 6.9: a prompt's name is understood as it is listed.
        #[test]
        fn listed_names_are_understood(name in r#"[a-b"'\\\\ =.\u{a0}]{1,8}"#) {
            let line = format!("desk.{} x", typed(&name).unwrap());
            let words = split(&line).unwrap();
            prop_assert_eq!(&words[0].text, &format!("desk.{name}"));
            prop_assert_eq!(words.len(), 2);
        }
    }

    /// SPEC 10.4: what has no place is told.
    #[test]
    fn mistakes() {
        let check = |line: &str, expect: &str| {
            let prompt = prompt();
            assert_eq!(given(&prompt, &split(line).unwrap()).unwrap_err(), expect, "{line:?}");
        };
        check(
            "town=Rome",
            "it has no argument town (a word in quotes is taken as it is)",
        );
        check("city=a city=b", "city is given twice");
        check("a b c d", "there is no argument left for \"d\"");
    }

    /// SPEC 8.5: of a long prompt the beginning is shown; SPEC 8.8: a question about an argument is escaped.
    #[test]
    fn shown() {
        assert_eq!(beginning("a\nb"), "a\nb");
        let long = "x\n".repeat(100);
        assert!(beginning(&long).ends_with("x\n… 60 more lines"));
        let wide = "x".repeat(SHOWN_CHARS_MAX + 1);
        assert_eq!(beginning(&wide).chars().count(), SHOWN_CHARS_MAX + 1);
        let argument = Argument {
            name: "ci\u{1b}ty".to_owned(),
            description: "which\none".to_owned(),
            is_required: true,
        };
        assert_eq!(asking("desk.p", &argument), "desk.p: ci\\x1bty (which\\none): ");
    }
}
