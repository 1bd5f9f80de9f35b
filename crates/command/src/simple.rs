//! The simple commands of a command line, however deep they stand: in pipelines, lists, blocks, substitutions, functions,
//! here-documents, and in what programs like `sudo`, `xargs`, `find -exec` or `sh -c` are told to run (SPEC 5.7).
//!
//! [`simple_commands`] gives all of them flat, with what is written to or read from ([`Redirect`]) and what is set
//! ([`Assignment`]), for whoever judges whether the line may run. It promises completeness, not order: whatever would run is in
//! [`Parts`], or the parts say that something is hidden ([`Inner::Hidden`]) or in doubt ([`Parts::doubt`]).

mod account;
mod evaluated;
mod programs;
mod words;
mod wrappers;

use crate::{NotParsed, PARSED_BYTES_MAX, parse};
use account::Account;
use aish_core::parts::{Assignment, Inner, Parts, Redirect, SimpleCommand, Word};
use evaluated::Evaluated;
use tree_sitter::{Node, Tree};
use wrappers::Wrapped;

/// How deep commands may stand in text that is itself an argument: `sh -c "sh -c '…'"`.
const LEVELS_MAX: usize = 8;
/// Simple commands of one line.
const COMMANDS_MAX: usize = 4_000;

/// Why the commands of a line cannot be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotUnderstood {
    /// It has no syntax.
    #[error(transparent)]
    NotParsed(#[from] NotParsed),
    /// The grammar does not take it.
    #[error("the command line is not written as bash's grammar wants it")]
    Malformed,
    /// The grammar may have read it otherwise than a shell would.
    #[error("the command line holds something that shells may read otherwise than it looks")]
    Unclear,
    /// What a variable or a command's output holds is taken for code.
    #[error("the command line evaluates as code what a variable or a command's output holds")]
    Evaluated,
    /// There is command in command in command.
    #[error("the command line has commands {LEVELS_MAX} levels deep")]
    TooDeep,
    /// There are too many.
    #[error("the command line has more than {COMMANDS_MAX} commands")]
    TooMany,
    /// An alias of an alias grows fast.
    #[error("the aliases of the command line stand for more than {PARSED_BYTES_MAX} bytes")]
    TooLong,
}

/// The parts of a command line, by bash's grammar; with a doubt where it cannot be understood, as a whole or somewhere in it.
pub fn simple_commands(text: &str) -> Parts {
    let mut parts = Parts::default();
    if let Err(why) = read(text, &mut parts) {
        parts.doubt = Some(why.to_string());
    }
    parts
}

fn read(text: &str, parts: &mut Parts) -> Result<(), NotUnderstood> {
    let mut waiting = vec![Code {
        text: text.to_owned(),
        by: Vec::new(),
        level: 0,
    }];
    let mut aliases = Aliases::default();
    let mut understood = Ok(());
    while let Some(code) = waiting.pop() {
        if code.level > LEVELS_MAX {
            return Err(NotUnderstood::TooDeep);
        }
        let syntax = parse(&code.text)?;
        if syntax.is_malformed() {
            // What can be seen is still worth telling: a rule may deny it.
            understood = Err(NotUnderstood::Malformed);
        }
        let mut reading = Reading {
            code: &code,
            parts,
            waiting: &mut waiting,
            aliases: &mut aliases,
            taken: Vec::new(),
        };
        let said = reading.tree(&syntax.tree)?;
        understood = understood.and(said);
    }
    understood
}

/// Text that is code.
struct Code {
    text: String,
    by: Vec<String>,
    level: usize,
}

/// The aliases that were set so far.
#[derive(Default)]
struct Aliases {
    /// Their names, and what they stand for.
    set: Vec<(String, String)>,
    /// How much text they made.
    bytes: usize,
}

struct Reading<'a> {
    code: &'a Code,
    parts: &'a mut Parts,
    waiting: &'a mut Vec<Code>,
    aliases: &'a mut Aliases,
    /// Nodes to come that were taken in with what is around them.
    taken: Vec<usize>,
}

impl Reading<'_> {
    /// Takes all of it in. The outer error ends the reading, the inner one says what else there may be.
    fn tree(&mut self, tree: &Tree) -> Result<Result<(), NotUnderstood>, NotUnderstood> {
        let mut account = Account::new(&self.code.text);
        let mut evaluated = Evaluated::new(&self.code.text);
        let mut cursor = tree.walk();
        loop {
            let node = cursor.node();
            account.node(&node);
            evaluated.node(&node);
            self.node(&node)?;
            if cursor.goto_first_child() {
                evaluated.enter(&node);
                continue;
            }
            while !cursor.goto_next_sibling() {
                if !cursor.goto_parent() {
                    let is_whole = account.is_whole();
                    return Ok(match (is_whole, evaluated.is_evaluated()) {
                        (false, _) => Err(NotUnderstood::Unclear),
                        (true, true) => Err(NotUnderstood::Evaluated),
                        (true, false) => Ok(()),
                    });
                }
                evaluated.leave();
            }
        }
    }

    fn node(&mut self, node: &Node<'_>) -> Result<(), NotUnderstood> {
        if let Some(at) = self.taken.iter().rposition(|taken| *taken == node.id()) {
            self.taken.swap_remove(at);
            return Ok(());
        }
        match node.kind() {
            "command" => self.command_node(node, Vec::new()),
            "redirected_statement" => self.redirected(node),
            // `export`, `declare`, `unset`: commands with a syntax of their own.
            "declaration_command" | "unset_command" if node.is_named() => {
                let mut words: Vec<Word> = node.child(0).map(|name| self.word(&name)).into_iter().collect();
                words.extend(self.named_children(node));
                self.command(Vec::new(), words)
            }
            "test_command" => {
                let name = node.child(0).map(|name| Word {
                    // No pattern here.
                    expands: false,
                    ..self.word(&name)
                });
                self.command(Vec::new(), name.into_iter().collect())
            }
            "function_definition" => {
                let name = node.child_by_field_name("name").map(|name| self.text(&name).to_owned());
                self.parts.functions.extend(name);
                Ok(())
            }
            "variable_assignment" => {
                let name = node.child_by_field_name("name").map(|name| self.text(&name).to_owned());
                let value = node.child_by_field_name("value").map(|value| self.word(&value));
                let assignment = name.map(|name| Assignment {
                    name,
                    value: value.unwrap_or_else(|| words::plain("")),
                });
                self.parts.assignments.extend(assignment);
                Ok(())
            }
            "file_redirect" => {
                self.redirect(node);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn text(&self, node: &Node<'_>) -> &str {
        self.code.text.get(node.byte_range()).unwrap_or_default()
    }

    fn word(&self, node: &Node<'_>) -> Word {
        words::word(&self.code.text, node)
    }

    fn named_children(&self, node: &Node<'_>) -> Vec<Word> {
        let mut cursor = node.walk();
        node.named_children(&mut cursor)
            .map(|child| self.word(&child))
            .collect()
    }

    /// A `command` node, with words of it that the grammar has put elsewhere.
    fn command_node(&mut self, node: &Node<'_>, elsewhere: Vec<Word>) -> Result<(), NotUnderstood> {
        let mut sets = Vec::new();
        let mut words = Vec::new();
        let mut cursor = node.walk();
        for child in node.children(&mut cursor) {
            match child.kind() {
                "variable_assignment" => {
                    self.taken.push(child.id());
                    sets.push(words::setting(&self.code.text, &child));
                }
                "file_redirect" | "herestring_redirect" | "heredoc_redirect" => {}
                _ => words.push(self.word(&child)),
            }
        }
        words.extend(elsewhere);
        self.command(sets, words)
    }

    /// Behind a redirection there may be arguments of the command: of `git > out push` the grammar makes three targets, or none.
    fn redirected(&mut self, node: &Node<'_>) -> Result<(), NotUnderstood> {
        let mut elsewhere = Vec::new();
        let mut cursor = node.walk();
        for redirect in node.children(&mut cursor) {
            let mut cursor = redirect.walk();
            match redirect.kind() {
                "file_redirect" => {
                    let targets = redirect.children_by_field_name("destination", &mut cursor);
                    elsewhere.extend(targets.skip(1).map(|target| self.word(&target)));
                }
                "heredoc_redirect" => {
                    let arguments = redirect.children_by_field_name("argument", &mut cursor);
                    elsewhere.extend(arguments.map(|argument| self.word(&argument)));
                }
                _ => {}
            }
        }
        if elsewhere.is_empty() {
            return Ok(());
        }
        match node.child_by_field_name("body").filter(|body| body.kind() == "command") {
            Some(body) => {
                self.taken.push(body.id());
                self.command_node(&body, elsewhere)
            }
            None => Err(NotUnderstood::Unclear),
        }
    }

    fn redirect(&mut self, node: &Node<'_>) {
        let mut cursor = node.walk();
        let operator = node.children(&mut cursor).find(|child| !child.is_named());
        let operator = operator.map(|operator| self.text(&operator).to_owned());
        let target = node.child_by_field_name("destination").map(|target| self.word(&target));
        self.parts.redirects.extend(target.map(|target| Redirect {
            operator: operator.unwrap_or_default(),
            target,
        }));
    }

    /// Takes a command in, and what it runs.
    fn command(&mut self, mut sets: Vec<Word>, mut words: Vec<Word>) -> Result<(), NotUnderstood> {
        let mut by = self.code.by.clone();
        loop {
            if self.parts.commands.len() >= COMMANDS_MAX {
                return Err(NotUnderstood::TooMany);
            }
            let mut command = SimpleCommand {
                sets: std::mem::take(&mut sets),
                words,
                by: by.clone(),
                inner: Inner::None,
            };
            let wrapped = wrappers::wrapped(&command);
            command.inner = wrappers::inner(&command, &wrapped);
            self.alias(&command)?;
            by.push(command.name().unwrap_or_default().to_owned());
            self.parts.commands.push(command);
            match wrapped {
                Wrapped::Nothing | Wrapped::Hidden => return Ok(()),
                Wrapped::Code(text) => {
                    let level = self.code.level + 1;
                    self.waiting.push(Code { text, by, level });
                    return Ok(());
                }
                Wrapped::Words(_) if by.len() > LEVELS_MAX => return Err(NotUnderstood::TooDeep),
                Wrapped::Words(inner) => words = inner,
            }
        }
    }

    /// Takes in what an alias stands for, or which ones are set.
    fn alias(&mut self, command: &SimpleCommand) -> Result<(), NotUnderstood> {
        let Some((name, arguments)) = command.name().zip(command.words.get(1..)) else {
            return Ok(());
        };
        if name == "alias" {
            let set = arguments.iter().filter_map(|word| word.certain()?.split_once('='));
            let set = set.map(|(name, said)| (name.to_owned(), said.to_owned()));
            self.aliases.set.extend(set);
        }
        // An alias is not looked for in what it stands for itself.
        if command.by.iter().any(|by| by == name) {
            return Ok(());
        }
        for (_, said) in self.aliases.set.iter().filter(|(alias, _)| alias == name) {
            let arguments = arguments.iter().map(|word| word.text.as_str());
            let words: Vec<&str> = [said.as_str()].into_iter().chain(arguments).collect();
            let text = words.join(" ");
            self.aliases.bytes += text.len();
            if self.aliases.bytes > PARSED_BYTES_MAX {
                return Err(NotUnderstood::TooLong);
            }
            let by = [command.by.as_slice(), &[name.to_owned()]].concat();
            let level = self.code.level + 1;
            self.waiting.push(Code { text, by, level });
        }
        Ok(())
    }
}
