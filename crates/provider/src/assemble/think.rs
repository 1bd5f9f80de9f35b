//! Thinking that comes as text: `<think>…</think>` at the beginning of a reply (SPEC 7.4).
//!
//! Only there: a tag later on is something the model writes about. Tags may be split over any number of chunks, so
//! that what might become one is held back.

const OPEN: &str = "<think>";
const CLOSE: &str = "</think>";

/// Bytes of white space before the tag; after more than that, the reply is text.
const LEAD_BYTES_MAX: usize = 64;

/// Whether the model speaks or thinks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Voice {
    /// It speaks.
    Text,
    /// It thinks.
    Thinking,
}

/// Where in the reply we are.
#[derive(Debug, Default, PartialEq, Eq)]
enum Place {
    /// Nothing but white space and perhaps the beginning of the tag so far.
    #[default]
    Start,
    /// Inside.
    Inside,
    /// Behind the closing tag, before the first letter: servers put empty lines there.
    Between,
    /// In the text.
    Past,
}

/// Takes thinking out of text that comes in pieces.
#[derive(Debug, Default)]
pub struct ThinkSplitter {
    place: Place,
    held: String,
}

impl ThinkSplitter {
    /// True once all that follows is text.
    pub fn is_past(&self) -> bool {
        self.place == Place::Past
    }

    /// Takes the next piece of text; what comes out may be empty.
    pub fn split(&mut self, text: &str) -> Vec<(Voice, String)> {
        let mut out = Vec::new();
        self.held.push_str(text);
        loop {
            match self.place {
                Place::Start => {
                    let lead = self.held.len() - self.held.trim_start().len();
                    let word = self.held.trim_start();
                    if lead > LEAD_BYTES_MAX {
                        self.place = Place::Past;
                    } else if word.starts_with(OPEN) {
                        self.held.drain(..lead + OPEN.len());
                        self.place = Place::Inside;
                    } else if OPEN.starts_with(word) {
                        return out;
                    } else {
                        self.place = Place::Past;
                    }
                }
                Place::Inside => {
                    let Some(at) = self.held.find(CLOSE) else {
                        let keep = self.held.len() - partial_tag_bytes(&self.held);
                        let rest = self.held.split_off(keep);
                        out.push((Voice::Thinking, std::mem::replace(&mut self.held, rest)));
                        return out;
                    };
                    let rest = self.held.split_off(at);
                    out.push((Voice::Thinking, std::mem::replace(&mut self.held, rest)));
                    self.held.drain(..CLOSE.len());
                    self.place = Place::Between;
                }
                Place::Between => {
                    let lead = self.held.len() - self.held.trim_start().len();
                    self.held.drain(..lead);
                    if self.held.is_empty() {
                        return out;
                    }
                    self.place = Place::Past;
                }
                Place::Past => {
                    out.push((Voice::Text, std::mem::take(&mut self.held)));
                    return out;
                }
            }
        }
    }

    /// Ends the text and returns what was held back.
    pub fn end(&mut self) -> Option<(Voice, String)> {
        let held = std::mem::take(&mut self.held);
        let voice = match std::mem::replace(&mut self.place, Place::Past) {
            Place::Inside => Voice::Thinking,
            Place::Start | Place::Between | Place::Past => Voice::Text,
        };
        (!held.is_empty()).then_some((voice, held))
    }
}

/// How many bytes at the end may be the beginning of the closing tag.
fn partial_tag_bytes(text: &str) -> usize {
    (1..CLOSE.len())
        .rev()
        .find(|bytes| CLOSE.get(..*bytes).is_some_and(|tag| text.ends_with(tag)))
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Thinking and text of a reply, the same for every way to cut it.
    fn check(reply: &str, thinking: &str, text: &str) {
        let chars: Vec<String> = reply.chars().map(String::from).collect();
        let mut ways = vec![vec![reply.to_owned()], chars.clone()];
        ways.extend((0..chars.len()).map(|at| vec![chars[..at].concat(), chars[at..].concat()]));
        for way in ways {
            let mut splitter = ThinkSplitter::default();
            let mut pieces: Vec<_> = way.iter().flat_map(|piece| splitter.split(piece)).collect();
            pieces.extend(splitter.end());
            let said = |voice| {
                let of = pieces.iter().filter(|piece| piece.0 == voice);
                of.map(|piece| piece.1.as_str()).collect::<String>()
            };
            assert_eq!(
                (said(Voice::Thinking).as_str(), said(Voice::Text).as_str()),
                (thinking, text),
                "{way:?}"
            );
        }
    }

    /// SPEC 7.4: `<think>` at the beginning is thinking, however it is cut.
    #[test]
    fn tags() {
        check("<think>a</think>b", "a", "b");
        check(
            "\n <think>\na < b </thin\n</think>\n\nžb </think>",
            "\na < b </thin\n",
            "žb </think>",
        );
        check("<think></think>", "", "");
        check("<think>never closed </th", "never closed </th", "");
    }

    /// SPEC 7.4: elsewhere it is text.
    #[test]
    fn text() {
        check("a <think>b</think>", "", "a <think>b</think>");
        check("<thin", "", "<thin");
        check("<thinking>a", "", "<thinking>a");
        check("", "", "");
        check("  a", "", "  a");
        let wide = " ".repeat(LEAD_BYTES_MAX + 1);
        check(&format!("{wide}<think>a"), "", &format!("{wide}<think>a"));
    }
}
