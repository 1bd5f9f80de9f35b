//! Whether a tree accounts for all of its text: a grammar that is not the shell's own may pass something over, and what it passed
//! over would run unseen.
//!
//! | what | why it is not understood |
//! |---|---|
//! | something else than blanks between two leaves | a carriage return is a blank to the grammar and a letter to a shell |
//! | a line that goes on in the middle of a word | the grammar ends the word there |
//! | the mark of a substitution in a leaf that is no quotation | the grammar took code for text |
//! | the mark of a substitution in quotes, next to arithmetic | a shell evaluates a subscript once more, quotes or not |

use tree_sitter::Node;

/// Marks that begin a substitution.
const MARKS: [&str; 3] = ["$(", "$[", "`"];

/// What was seen of a text so far, leaf by leaf.
pub(super) struct Account<'a> {
    text: &'a str,
    /// Where the last leaf ended.
    end: usize,
    is_unclear: bool,
    has_quoted_code: bool,
    has_arithmetic: bool,
    /// A here-document's text is substituted in, as its mark is not quoted.
    has_live_document: bool,
}

impl<'a> Account<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self {
            text,
            end: 0,
            is_unclear: false,
            has_quoted_code: false,
            has_arithmetic: false,
            has_live_document: false,
        }
    }

    /// Call for every node, in the order of the text.
    pub(super) fn node(&mut self, node: &Node<'_>) {
        self.has_arithmetic |= matches!(
            node.kind(),
            "((" | "$((" | "arithmetic_expansion" | "test_command" | "subscript" | "c_style_for_statement"
        );
        if node.child_count() > 0 {
            return;
        }
        let text = self.text;
        self.is_unclear |= !self.is_blank(self.end, node.start_byte());
        self.end = node.end_byte();
        let leaf = text.get(node.byte_range()).unwrap_or_default();
        match node.kind() {
            "raw_string" | "ansi_c_string" => self.has_quoted_code |= has_mark(leaf),
            "heredoc_start" => self.has_live_document |= !leaf.contains(['\'', '"', '\\']),
            "heredoc_body" | "heredoc_content" => self.is_unclear |= self.has_live_document && has_mark(leaf),
            "comment" | "heredoc_end" => {}
            _ => self.is_unclear |= node.is_named() && has_mark(leaf),
        }
    }

    /// Whether nothing was passed over; call behind the last node.
    pub(super) fn is_whole(&self) -> bool {
        let is_evaluated_twice = self.has_arithmetic && self.has_quoted_code;
        !self.is_unclear && !is_evaluated_twice && self.is_blank(self.end, self.text.len())
    }

    /// Whether nothing but blanks, and line ends that are none, lies there.
    fn is_blank(&self, start: usize, end: usize) -> bool {
        let bytes = self.text.as_bytes();
        let is_space = |at: usize| bytes.get(at).is_none_or(|byte| matches!(byte, b' ' | b'\t' | b'\n'));
        let Some(gap) = bytes.get(start..end) else {
            return false;
        };
        gap.iter().enumerate().all(|(n, byte)| match byte {
            b' ' | b'\t' | b'\n' => true,
            b'\\' => {
                let at = start + n;
                let is_apart = at.checked_sub(1).is_none_or(is_space) || is_space(at + 2);
                bytes.get(at + 1) == Some(&b'\n') && is_apart
            }
            _ => false,
        })
    }
}

/// Whether the mark of a substitution stands in it that no backslash takes its meaning from.
fn has_mark(text: &str) -> bool {
    MARKS.iter().any(|mark| {
        text.match_indices(mark).any(|(at, _)| {
            let before = text.get(..at).unwrap_or_default();
            let backslashes = before.len() - before.trim_end_matches('\\').len();
            backslashes % 2 == 0
        })
    })
}
