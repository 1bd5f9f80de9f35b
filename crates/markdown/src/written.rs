//! The code of a reply as it was written, to be taken elsewhere: without frames, colours and indents.

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

/// The blocks of code of a text, in order, each ending in a line feed unless it is empty; the text is not made safe.
///
/// ```
/// let text = "First\n```sh\nls -l\n```\nthen\n\n    make\n";
/// assert_eq!(aish_markdown::code_blocks(text), ["ls -l\n", "make\n"]);
/// ```
pub fn code_blocks(text: &str) -> Vec<String> {
    let mut blocks = Vec::new();
    let mut open: Option<String> = None;
    for event in Parser::new_ext(text, Options::ENABLE_TABLES) {
        if let Event::Start(Tag::CodeBlock(_)) = &event {
            open = Some(String::new());
        } else if let Event::End(TagEnd::CodeBlock) = &event {
            blocks.extend(open.take());
        } else if let (Event::Text(text), Some(block)) = (&event, &mut open) {
            block.push_str(text);
        }
    }
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expect: &[&str]) {
        assert_eq!(code_blocks(text), expect, "{text:?}");
    }

    /// SPEC 8.6: code is taken as it was written, wherever it stands.
    #[test]
    fn blocks() {
        check("none `here`", &[]);
        check("- a\n\n  ```sh\n  if x\n    y\n\n  ```\n", &["if x\n  y\n\n"]);
        check("> ~~~\n> a\n> ~~~\n", &["a\n"]);
        check("```\n```\nx\n```js\ncut off", &["", "cut off"]);
        check("````md\n```\ninner\n```\n````\n", &["```\ninner\n```\n"]);
    }
}
