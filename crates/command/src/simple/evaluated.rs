//! Whether a line evaluates as code what a variable or a command's output holds: nobody sees that code.
//!
//! In arithmetic a shell takes text for an expression, and substitutes what stands in the subscripts of that: with
//! `x='a[$(rm y)]'`, `$((x))` runs `rm`.
//!
//! | where | what is evaluated |
//! |---|---|
//! | `$((…))`, `$[…]`, `((…))`, the head of `for ((…))` | all of it |
//! | a subscript, `${x:…}` | the index, the offset and the length |
//! | `[[ … -eq … ]]` and its like; `[[ -v … ]]` | both sides; the name, unless it stands there |
//! | `${x@P}`, `${!x}` | what `x` holds |

use std::ops::Range;
use tree_sitter::Node;

/// Operators of `[[` whose sides are arithmetic.
const TESTS_OF_NUMBERS: [&str; 6] = ["-eq", "-ne", "-lt", "-le", "-gt", "-ge"];
/// Operators of `[[` behind which the name of a variable stands.
const TESTS_OF_NAMES: [&str; 2] = ["-v", "-R"];

/// What the nodes inside a node stand in.
#[derive(Clone, Debug)]
enum Around {
    Text,
    /// Between `[[` and `]]`.
    Test,
    /// Those that begin in this range are evaluated.
    Arithmetic(Range<usize>),
}

/// What was seen of a tree so far.
pub(super) struct Evaluated<'a> {
    text: &'a str,
    /// The nodes that the present one is in, the innermost last.
    around: Vec<Around>,
    is_evaluated: bool,
}

impl<'a> Evaluated<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self {
            text,
            around: Vec::new(),
            is_evaluated: false,
        }
    }

    /// Call for every node, before [`Self::enter`].
    pub(super) fn node(&mut self, node: &Node<'_>) {
        let text = self.text(node);
        let is_arithmetic = matches!(self.at(node), Around::Arithmetic(_));
        self.is_evaluated |= match node.kind() {
            "expansion" => text.ends_with("@P}") || is_indirect(text),
            "command_substitution" | "process_substitution" => is_arithmetic,
            "number" => false,
            "special_variable_name" => is_arithmetic && matches!(text, "@" | "*"),
            // A number with letters in it is a variable to the grammar.
            "variable_name" => is_arithmetic && !text.starts_with("0x"),
            _ => is_arithmetic && is_named_leaf(node) && has_name(text),
        };
    }

    /// Call before the nodes in this one.
    pub(super) fn enter(&mut self, node: &Node<'_>) {
        let inside = self.inside(node);
        self.around.push(inside);
    }

    /// Call behind them.
    pub(super) fn leave(&mut self) {
        self.around.pop();
    }

    /// Whether something is evaluated that nobody sees.
    pub(super) fn is_evaluated(&self) -> bool {
        self.is_evaluated
    }

    fn text(&self, node: &Node<'_>) -> &'a str {
        self.text.get(node.byte_range()).unwrap_or_default()
    }

    fn at(&self, node: &Node<'_>) -> Around {
        match self.around.last() {
            Some(Around::Arithmetic(range)) if !range.contains(&node.start_byte()) => Around::Text,
            Some(around) => around.clone(),
            None => Around::Text,
        }
    }

    fn inside(&self, node: &Node<'_>) -> Around {
        let all = || Around::Arithmetic(node.byte_range());
        let at = self.at(node);
        match node.kind() {
            // In a here-document the grammar takes arithmetic for a command.
            "command_substitution" if self.text(node).starts_with("$((") => return all(),
            "command_substitution" | "process_substitution" => return Around::Text,
            _ if matches!(at, Around::Arithmetic(_)) => return all(),
            _ => {}
        }
        let begins_with = |token| node.child(0).is_some_and(|child| child.kind() == token);
        let field = |name| node.child_by_field_name(name);
        match node.kind() {
            "arithmetic_expansion" => all(),
            "compound_statement" if begins_with("((") => all(),
            "c_style_for_statement" => {
                let end = field("body").map_or(node.end_byte(), |body| body.start_byte());
                Around::Arithmetic(node.start_byte()..end)
            }
            "subscript" => field("index").map_or(at, |index| Around::Arithmetic(index.byte_range())),
            "expansion" => {
                let mut cursor = node.walk();
                let colon = node.children(&mut cursor).find(|child| child.kind() == ":");
                colon.map_or(at, |colon| Around::Arithmetic(colon.start_byte()..node.end_byte()))
            }
            "test_command" if begins_with("[[") => Around::Test,
            "binary_expression" | "unary_expression" if matches!(at, Around::Test) => {
                let operator = field("operator")
                    .map(|operator| self.text(&operator))
                    .unwrap_or_default();
                let last = node.child(node.child_count().saturating_sub(1));
                let name = last.filter(|last| last.kind() != "word" && TESTS_OF_NAMES.contains(&operator));
                match name {
                    Some(name) => Around::Arithmetic(name.byte_range()),
                    None if TESTS_OF_NUMBERS.contains(&operator) => all(),
                    None => at,
                }
            }
            _ => at,
        }
    }
}

/// Whether it holds what may be the name of a variable.
fn has_name(text: &str) -> bool {
    let is_of_name = |c: char| c.is_alphanumeric() || c == '_';
    let mut runs = text.split(|c| !is_of_name(c));
    runs.any(|run| run.starts_with(|c: char| is_of_name(c) && !c.is_ascii_digit()))
}

fn is_named_leaf(node: &Node<'_>) -> bool {
    node.is_named() && node.child_count() == 0 && node.kind() != "test_operator"
}

/// `${!x}`, but neither the names that begin with something, `${!x*}`, nor the keys of an array, `${!x[@]}`.
fn is_indirect(text: &str) -> bool {
    let name = text.strip_prefix("${!");
    name.is_some_and(|name| name != "}" && !["*}", "@}", "[@]}", "[*]}"].iter().any(|end| name.ends_with(end)))
}
