//! A line cut into pieces of one class each, for whoever colours it.

use crate::Syntax;
use std::ops::Range;
use tree_sitter::Node;

/// How a node is called that the grammar cannot place.
const ERROR: &str = "ERROR";

/// What a piece of a line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Space, and words that are nothing more.
    Plain,
    /// The name of what is run.
    Command,
    /// A word of the grammar: `if`, `for`, `export`.
    Keyword,
    /// A word that begins with `-`.
    Option,
    /// Something in quotes, or the text of a here-document.
    Quoted,
    /// A variable, where it is set or used.
    Variable,
    /// `|`, `&&`, `;`, parentheses, the marks of substitutions.
    Operator,
    /// `>`, `2>`, `<<`: where something goes to or comes from.
    Redirect,
    /// From `#` on.
    Comment,
    /// What the grammar cannot place.
    Error,
}

/// Some bytes of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Which; both ends are boundaries of characters.
    pub bytes: Range<usize>,
    /// What they are.
    pub class: Class,
}

impl Syntax<'_> {
    /// The whole line in pieces, in order, without gaps; neighbours differ in class.
    pub fn pieces(&self) -> Vec<Piece> {
        let mut classes = vec![Class::Plain; self.text.len()];
        // The outer first: what is in it paints over it. What a node is in is remembered here: to ask the tree costs a walk from
        // its root.
        let mut around: Vec<&str> = Vec::new();
        let mut cursor = self.tree.walk();
        loop {
            let node = cursor.node();
            let class = self.class(&node, around.last().copied().unwrap_or_default());
            if let Some(class) = class
                && let Some(bytes) = classes.get_mut(node.byte_range())
            {
                bytes.fill(class);
            }
            if cursor.goto_first_child() {
                around.push(if node.is_error() { ERROR } else { node.kind() });
                continue;
            }
            while !cursor.goto_next_sibling() {
                around.pop();
                if !cursor.goto_parent() {
                    return merged(self.text, &classes);
                }
            }
        }
    }

    /// The class of a node in a `parent`, where it has one that is not that of what is around it.
    fn class(&self, node: &Node<'_>, parent: &str) -> Option<Class> {
        if node.is_error() {
            return (node.child_count() == 0).then_some(Class::Error);
        }
        if node.is_named() {
            return self.class_of_named(node, parent);
        }
        match (node.kind(), parent) {
            ("\"" | "'", _) => Some(Class::Quoted),
            (
                "if" | "then" | "else" | "elif" | "fi" | "for" | "select" | "while" | "until" | "do" | "done" | "case"
                | "in" | "esac" | "function" | "declare" | "typeset" | "export" | "readonly" | "local" | "unset"
                | "unsetenv" | "[" | "]" | "[[" | "]]",
                _,
            ) => Some(Class::Keyword),
            (_, "simple_expansion" | "expansion") => Some(Class::Variable),
            ("(" | ")", ERROR) => Some(Class::Error),
            (_, "file_redirect" | "herestring_redirect" | "heredoc_redirect") => Some(Class::Redirect),
            (_, "string_content" | "regex" | "word") => None,
            _ => Some(Class::Operator),
        }
    }

    fn class_of_named(&self, node: &Node<'_>, parent: &str) -> Option<Class> {
        match node.kind() {
            "command_name" => Some(Class::Command),
            "string" | "string_content" | "raw_string" | "ansi_c_string" | "translated_string" | "heredoc_body"
            | "heredoc_content" => Some(Class::Quoted),
            // Within quotes, too, it is code again.
            "command_substitution" | "process_substitution" => Some(Class::Plain),
            "variable_name" | "special_variable_name" | "simple_expansion" | "expansion" => Some(Class::Variable),
            "comment" => Some(Class::Comment),
            "file_descriptor" | "heredoc_start" | "heredoc_end" => Some(Class::Redirect),
            "test_operator" => Some(Class::Option),
            "word" | "number" => self.class_of_word(node, parent),
            _ => None,
        }
    }

    fn class_of_word(&self, node: &Node<'_>, parent: &str) -> Option<Class> {
        match parent {
            "command_name" => None,
            "function_definition" => Some(Class::Command),
            _ => {
                let text = self.text.get(node.byte_range())?;
                text.starts_with('-').then_some(Class::Option)
            }
        }
    }
}

/// Runs of one class.
fn merged(text: &str, classes: &[Class]) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = Vec::new();
    for (at, character) in text.char_indices() {
        let class = classes.get(at).copied().unwrap_or(Class::Plain);
        let end = at + character.len_utf8();
        match pieces.last_mut() {
            Some(last) if last.class == class => last.bytes.end = end,
            Some(_) | None => pieces.push(Piece { bytes: at..end, class }),
        }
    }
    pieces
}
