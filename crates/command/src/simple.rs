//! The simple commands of a command line, however deep they stand: in pipelines, lists, blocks, substitutions, functions,
//! here-documents, and in what programs like `sudo`, `xargs`, `find -exec` or `sh -c` are told to run (SPEC 5.7).
//!
//! [`simple_commands`] gives all of them flat, with what is written to or read from ([`Redirect`]) and what is set
//! ([`Assignment`]), for whoever judges whether the line may run. It promises completeness, not order: whatever would run is in
//! [`Parts`], or the parts say that something is hidden ([`Inner::Hidden`]), or there is an error.

mod words;
mod wrappers;

use crate::{NotParsed, parse};
use tree_sitter::Node;
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
    /// There is command in command in command.
    #[error("the command line has commands {LEVELS_MAX} levels deep")]
    TooDeep,
    /// There are too many.
    #[error("the command line has more than {COMMANDS_MAX} commands")]
    TooMany,
}

/// One word, as a shell would pass it on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word {
    /// As it is written.
    pub text: String,
    /// What it says, its quotes taken off; `None` if only running it would tell.
    pub value: Option<String>,
    /// It has `*`, `?`, `[…]`, `{…}` or `~` outside quotes, and may become other words.
    pub expands: bool,
}

/// Whether a command runs another that it is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inner {
    /// It is not known to.
    None,
    /// It does, and that one is among the parts too.
    Seen,
    /// It may, and nobody can say which.
    Hidden,
}

/// A program, builtin or function, and what it is given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SimpleCommand {
    /// Its words, the name first.
    pub words: Vec<Word>,
    /// By which commands it is run, the outermost first: `sudo`, `xargs`.
    pub by: Vec<String>,
    /// Whether it runs another.
    pub inner: Inner,
}

impl SimpleCommand {
    /// What is run; `None` if only running it would tell.
    pub fn name(&self) -> Option<&str> {
        self.words
            .first()
            .filter(|word| !word.expands)
            .and_then(|word| word.value.as_deref())
    }
}

/// What is written to or read from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redirect {
    /// `>`, `>>`, `<`, `&>`, `>|`, `>&`, `<&`, `<>`.
    pub operator: String,
    /// Which file or descriptor.
    pub target: Word,
}

/// A variable that is set, for one command or for all that follow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment {
    /// Which.
    pub name: String,
    /// To what; an array is as it is written.
    pub value: Word,
}

/// What a command line is made of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parts {
    /// What runs.
    pub commands: Vec<SimpleCommand>,
    /// Where things go to and come from.
    pub redirects: Vec<Redirect>,
    /// What is set.
    pub assignments: Vec<Assignment>,
    /// Functions that are defined: from there on, such a name means them. Their bodies are among the commands.
    pub functions: Vec<String>,
}

/// The parts of a command line, by bash's grammar.
///
/// # Errors
/// It cannot be understood, as a whole or somewhere in it.
pub fn simple_commands(text: &str) -> Result<Parts, NotUnderstood> {
    let mut parts = Parts::default();
    let mut waiting = vec![Code {
        text: text.to_owned(),
        by: Vec::new(),
        level: 0,
    }];
    while let Some(code) = waiting.pop() {
        if code.level > LEVELS_MAX {
            return Err(NotUnderstood::TooDeep);
        }
        let syntax = parse(&code.text)?;
        if syntax.is_malformed() {
            return Err(NotUnderstood::Malformed);
        }
        let mut reading = Reading {
            code: &code,
            parts: &mut parts,
            waiting: &mut waiting,
        };
        let mut cursor = syntax.tree.walk();
        'tree: loop {
            reading.node(&cursor.node())?;
            if cursor.goto_first_child() {
                continue;
            }
            while !cursor.goto_next_sibling() {
                if !cursor.goto_parent() {
                    break 'tree;
                }
            }
        }
    }
    Ok(parts)
}

/// Text that is code.
struct Code {
    text: String,
    by: Vec<String>,
    level: usize,
}

struct Reading<'a> {
    code: &'a Code,
    parts: &'a mut Parts,
    waiting: &'a mut Vec<Code>,
}

impl Reading<'_> {
    fn node(&mut self, node: &Node<'_>) -> Result<(), NotUnderstood> {
        match node.kind() {
            "command" => self.command(self.words_of(node)),
            // `export`, `declare`, `unset`: commands with a syntax of their own.
            "declaration_command" | "unset_command" if node.is_named() => {
                let mut words: Vec<Word> = node.child(0).map(|name| self.word(&name)).into_iter().collect();
                words.extend(self.named_children(node));
                self.command(words)
            }
            "test_command" => {
                let name = node.child(0).map(|name| Word {
                    // No pattern here.
                    expands: false,
                    ..self.word(&name)
                });
                self.command(name.into_iter().collect())
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
                    value: value.unwrap_or_else(Word::empty),
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

    /// The words of a `command` node, without what is set for it and where it writes to.
    fn words_of(&self, node: &Node<'_>) -> Vec<Word> {
        let mut cursor = node.walk();
        let children = node.children(&mut cursor);
        let words = children.filter(|child| {
            !matches!(
                child.kind(),
                "variable_assignment" | "file_redirect" | "herestring_redirect" | "heredoc_redirect"
            )
        });
        words.map(|child| self.word(&child)).collect()
    }

    fn redirect(&mut self, node: &Node<'_>) {
        let mut cursor = node.walk();
        let operator = node.children(&mut cursor).find(|child| !child.is_named());
        let operator = operator
            .map(|operator| self.text(&operator).to_owned())
            .unwrap_or_default();
        let mut cursor = node.walk();
        let targets = node.children_by_field_name("destination", &mut cursor);
        // Behind the first there may be arguments: `> out a b` is read as three targets.
        let targets: Vec<Word> = targets.map(|target| self.word(&target)).collect();
        let redirects = targets.into_iter().map(|target| Redirect {
            operator: operator.clone(),
            target,
        });
        self.parts.redirects.extend(redirects);
    }

    /// Takes a command in, and what it runs.
    fn command(&mut self, words: Vec<Word>) -> Result<(), NotUnderstood> {
        let mut words = words;
        let mut by = self.code.by.clone();
        loop {
            if self.parts.commands.len() >= COMMANDS_MAX {
                return Err(NotUnderstood::TooMany);
            }
            let mut command = SimpleCommand {
                words,
                by: by.clone(),
                inner: Inner::None,
            };
            let wrapped = wrappers::wrapped(&command);
            if wrapped != Wrapped::Nothing {
                by.push(command.name().unwrap_or_default().to_owned());
            }
            let next = match wrapped {
                Wrapped::Nothing => None,
                Wrapped::Hidden => {
                    command.inner = Inner::Hidden;
                    None
                }
                Wrapped::Code(code) => {
                    command.inner = Inner::Seen;
                    self.waiting.push(Code {
                        text: code,
                        by: by.clone(),
                        level: self.code.level + 1,
                    });
                    None
                }
                Wrapped::Words(inner) => {
                    command.inner = Inner::Seen;
                    Some(inner)
                }
            };
            self.parts.commands.push(command);
            match next {
                Some(_) if by.len() > LEVELS_MAX => return Err(NotUnderstood::TooDeep),
                Some(inner) => words = inner,
                None => return Ok(()),
            }
        }
    }
}
