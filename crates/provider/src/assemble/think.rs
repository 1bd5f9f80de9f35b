//! Thinking that comes as text, at the beginning of a reply (SPEC 7.4).
//!
//! Only there: a tag later on is something the model writes about. Tags may be split over any number of chunks, so that what
//! might become one is held back. Some templates open the tag themselves, so that the reply has only the closing one: then
//! what was taken for text was thinking ([`Heard::WasThinking`]).

use super::lines::{Lines, Place as At};

/// What models put around their thinking.
const PAIRS: &[(&str, &str)] = &[
    // DeepSeek, Qwen, GLM and most others
    ("<think>", "</think>"),
    // Nova, and who was told to
    ("<thinking>", "</thinking>"),
    ("<thought>", "</thought>"),
    ("<reasoning>", "</reasoning>"),
    // Sky-T1, OpenThinker
    ("<|begin_of_thought|>", "<|end_of_thought|>"),
    // Magistral
    ("[THINK]", "[/THINK]"),
    // Seed-OSS
    ("<seed:think>", "</seed:think>"),
    // Command A
    ("<|START_THINKING|>", "<|END_THINKING|>"),
    // Kimi-VL
    ("◁think▷", "◁/think▷"),
    // gpt-oss
    ("<|channel|>analysis<|message|>", "<|end|>"),
    ("<|start|>assistant<|channel|>analysis<|message|>", "<|end|>"),
];

/// Closing tags that a reply may have without the opening one.
const UNOPENED: &[&str] = &[
    "</think>",
    "</thinking>",
    "[/THINK]",
    "</seed:think>",
    "<|end_of_thought|>",
];

/// What stands before the answer in gpt-oss's own tokens.
const ANSWERS: &[&str] = &[
    "<|channel|>final<|message|>",
    "<|start|>assistant<|channel|>final<|message|>",
    "<|channel|>commentary<|message|>",
    "<|start|>assistant<|channel|>commentary<|message|>",
];

/// What stands behind it.
const ANSWER_ENDS: &[&str] = &["<|return|>", "<|end|>"];

/// Bytes of white space before the tag; after more than that, the reply is text.
const LEAD_BYTES_MAX: usize = 64;

/// Bytes of thinking that may come before a closing tag that was never opened.
const UNOPENED_BYTES_MAX: usize = 1 << 20;

/// Whether the model speaks or thinks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Voice {
    /// It speaks.
    Text,
    /// It thinks.
    Thinking,
}

/// What a piece of text turned out to be.
#[derive(Debug, PartialEq, Eq)]
pub enum Heard {
    /// Something was said; perhaps nothing.
    Said(Voice, String),
    /// All text so far was thinking.
    WasThinking,
}

/// Where in the reply we are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Place {
    /// Nothing but white space and perhaps the beginning of a tag so far.
    #[default]
    Start,
    /// Inside, until this tag.
    Inside(&'static str),
    /// Behind a closing tag, before the first letter: servers put empty lines there.
    Between,
    /// In text that may yet turn out to be thinking.
    Open,
    /// In an answer between gpt-oss's tokens.
    Answer,
    /// In the text.
    Past,
}

/// Takes thinking out of text that comes in pieces.
#[derive(Debug, Default)]
pub struct ThinkSplitter {
    place: Place,
    held: String,
    lines: Lines,
    /// Bytes of text that may yet turn out to be thinking.
    open_bytes: usize,
}

impl ThinkSplitter {
    /// True once all that follows is text.
    pub fn is_past(&self) -> bool {
        self.place == Place::Past && self.held.is_empty()
    }

    /// The server tells thinking from text by itself: a tag that was never opened is only text. What was held back stays.
    pub fn is_told(&mut self) {
        if self.place == Place::Open {
            self.place = Place::Past;
        }
    }

    /// Takes the next piece of text and returns how much of its beginning is text for sure: most replies go through here
    /// untouched. The rest is held; [`Self::heard`] says what it turned out to be.
    pub fn take<'p>(&mut self, text: &'p str) -> &'p str {
        if self.is_past() {
            return text;
        }
        let sure = match self.place {
            Place::Open if self.held.is_empty() => {
                let stop = self.lines.next(text, is_tag);
                stop.map_or(text.len(), |(at, _)| at)
            }
            Place::Start | Place::Inside(_) | Place::Between | Place::Open | Place::Answer | Place::Past => 0,
        };
        let (sure, rest) = text.split_at_checked(sure).unwrap_or(("", text));
        self.open_bytes += sure.len();
        self.held.push_str(rest);
        sure
    }

    /// What is known now of what is held.
    pub fn heard(&mut self) -> Vec<Heard> {
        let mut out = Vec::new();
        if self.held.is_empty() {
            return out;
        }
        while match self.place {
            Place::Start => self.start(),
            Place::Inside(close) => self.inside(close, &mut out),
            Place::Between => self.between(),
            Place::Open => self.open(&mut out),
            Place::Answer => self.answer(&mut out),
            Place::Past => {
                self.say(Voice::Text, self.held.len(), &mut out);
                false
            }
        } {}
        out
    }

    /// Ends a block of text, after which another may come, and returns what was held back: a tag is never split over two.
    pub fn release(&mut self) -> Vec<Heard> {
        let held = std::mem::take(&mut self.held);
        if held.is_empty() {
            return Vec::new();
        }
        let voice = match self.place {
            Place::Inside(_) => Voice::Thinking,
            Place::Open if UNOPENED.contains(&held.as_str()) => {
                self.place = Place::Between;
                return vec![Heard::WasThinking];
            }
            // Nothing but white space is still no beginning.
            Place::Start if held.trim().is_empty() => Voice::Text,
            Place::Start | Place::Open => {
                self.place = Place::Open;
                self.lines.pass_block(&held);
                Voice::Text
            }
            Place::Between => {
                self.place = Place::Past;
                Voice::Text
            }
            Place::Answer | Place::Past => Voice::Text,
        };
        vec![Heard::Said(voice, held)]
    }

    /// Ends the text and returns what was held back.
    pub fn end(&mut self) -> Vec<Heard> {
        let held = std::mem::take(&mut self.held);
        let voice = match std::mem::replace(&mut self.place, Place::Past) {
            Place::Inside(_) => Voice::Thinking,
            Place::Open if UNOPENED.contains(&held.as_str()) => return vec![Heard::WasThinking],
            Place::Start | Place::Between | Place::Open | Place::Answer | Place::Past => Voice::Text,
        };
        if held.is_empty() {
            return Vec::new();
        }
        vec![Heard::Said(voice, held)]
    }

    /// Each of these looks at what is held and says whether there is more to look at.
    fn start(&mut self) -> bool {
        let lead = self.held.len() - self.held.trim_start().len();
        if lead > LEAD_BYTES_MAX {
            self.place = Place::Open;
            return true;
        }
        let word = self.held.get(lead..).unwrap_or_default();
        if let Some(close) = UNOPENED.iter().find(|close| word.starts_with(**close)) {
            self.held.drain(..lead + close.len());
            self.place = Place::Between;
            return true;
        }
        let may_close = UNOPENED.iter().any(|close| close.starts_with(word));
        match self.tag(lead) {
            Some(is_whole) => is_whole,
            None if may_close => false,
            None => {
                self.place = Place::Open;
                true
            }
        }
    }

    fn inside(&mut self, close: &'static str, out: &mut Vec<Heard>) -> bool {
        let Some(at) = self.held.find(close) else {
            let keep = self.held.len() - partial_bytes(&self.held, &[close]);
            self.say(Voice::Thinking, keep, out);
            return false;
        };
        self.say(Voice::Thinking, at, out);
        self.held.drain(..close.len());
        self.place = Place::Between;
        true
    }

    fn between(&mut self) -> bool {
        let lead = self.held.len() - self.held.trim_start().len();
        self.held.drain(..lead);
        match self.tag(0) {
            Some(is_whole) => is_whole,
            None => {
                self.place = Place::Past;
                true
            }
        }
    }

    /// Takes an opening tag off behind that much white space. Some(false) while there may be one, none where there is none.
    fn tag(&mut self, lead: usize) -> Option<bool> {
        let word = self.held.get(lead..)?;
        let opened = PAIRS.iter().map(|(open, close)| (*open, Place::Inside(close)));
        let mut tags = opened.chain(ANSWERS.iter().map(|open| (*open, Place::Answer)));
        if let Some((open, place)) = tags.clone().find(|(open, _)| word.starts_with(open)) {
            self.held.drain(..lead + open.len());
            self.place = place;
            return Some(true);
        }
        tags.any(|(open, _)| open.starts_with(word)).then_some(false)
    }

    /// Text, until a closing tag that was never opened stands alone at the beginning or the end of its line.
    fn open(&mut self, out: &mut Vec<Heard>) -> bool {
        let stop = self.lines.next(&self.held, is_tag);
        let (at, place) = stop.unwrap_or((self.held.len(), At::Anywhere));
        self.open_bytes += at;
        self.say(Voice::Text, at, out);
        // A tag that is opened here is what the model writes about, and so is the one that closes it.
        if self.open_bytes > UNOPENED_BYTES_MAX || PAIRS.iter().any(|(open, _)| self.held.starts_with(open)) {
            self.place = Place::Past;
            return !self.held.is_empty();
        }
        let Some(close) = UNOPENED.iter().find(|close| self.held.starts_with(**close)) else {
            return false;
        };
        let behind = self.held.get(close.len()..).unwrap_or_default();
        match behind.chars().next() {
            _ if place >= At::Line => {}
            // Whether it ends its line is not known yet.
            None => return false,
            Some('\n' | '\r') => {}
            Some(_) => {
                self.lines.pass(b'<');
                self.say(Voice::Text, 1, out);
                return true;
            }
        }
        out.push(Heard::WasThinking);
        self.held.drain(..close.len());
        self.place = Place::Between;
        true
    }

    fn answer(&mut self, out: &mut Vec<Heard>) -> bool {
        let ends = ANSWER_ENDS
            .iter()
            .filter_map(|end| Some((self.held.find(end)?, end.len())));
        let Some((at, bytes)) = ends.min() else {
            let keep = self.held.len() - partial_bytes(&self.held, ANSWER_ENDS);
            self.say(Voice::Text, keep, out);
            return false;
        };
        self.say(Voice::Text, at, out);
        self.held.drain(..bytes);
        self.place = Place::Between;
        true
    }

    /// Says the first bytes of what is held.
    fn say(&mut self, voice: Voice, bytes: usize, out: &mut Vec<Heard>) {
        if bytes > 0 {
            let rest = self.held.split_off(bytes);
            out.push(Heard::Said(voice, std::mem::replace(&mut self.held, rest)));
        }
    }
}

/// Whether a tag, opening or closing, may begin with this text.
fn is_tag(text: &str, _: At) -> bool {
    let opening = PAIRS.iter().map(|(open, _)| open);
    let mut tags = opening.chain(UNOPENED);
    tags.any(|tag| text.starts_with(tag) || tag.starts_with(text))
}

/// How many bytes at the end may be the beginning of one of these tags.
fn partial_bytes(text: &str, tags: &[&str]) -> usize {
    let of = |tag: &str| {
        let cuts = (1..tag.len()).rev();
        cuts.filter_map(|bytes| tag.get(..bytes))
            .find(|head| text.ends_with(head))
            .map_or(0, str::len)
    };
    tags.iter().map(|tag| of(tag)).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a piece of text adds.
    fn split(splitter: &mut ThinkSplitter, text: &str) -> Vec<Heard> {
        let sure = splitter.take(text).to_owned();
        let mut heard = vec![Heard::Said(Voice::Text, sure)];
        heard.extend(splitter.heard());
        heard
    }

    /// Thinking and text of a reply, the same for every way to cut it.
    fn check(reply: &str, thinking: &str, text: &str) {
        let chars: Vec<String> = reply.chars().map(String::from).collect();
        let mut ways = vec![vec![reply.to_owned()], chars.clone()];
        ways.extend((0..chars.len()).map(|at| vec![chars[..at].concat(), chars[at..].concat()]));
        for way in ways {
            let mut splitter = ThinkSplitter::default();
            let mut heard: Vec<_> = way.iter().flat_map(|piece| split(&mut splitter, piece)).collect();
            heard.extend(splitter.end());
            let (mut thought, mut said) = (String::new(), String::new());
            for piece in heard {
                match piece {
                    Heard::Said(Voice::Thinking, piece) => thought.push_str(&piece),
                    Heard::Said(Voice::Text, piece) => said.push_str(&piece),
                    Heard::WasThinking => thought.push_str(&std::mem::take(&mut said)),
                }
            }
            assert_eq!((thought.as_str(), said.as_str()), (thinking, text), "{way:?}");
        }
    }

    /// SPEC 7.4: tags at the beginning hold thinking, whoever's they are and however they are cut.
    #[test]
    fn tags() {
        for (open, close) in PAIRS {
            check(&format!("{open}a < b{close}\n\nc"), "a < b", "c");
        }
        check(
            "\n <think>\na < b </thin\n</think>\n\nžb </think>",
            "\na < b </thin\n",
            "žb </think>",
        );
        check("<think></think>", "", "");
        check("<think>never closed </th", "never closed </th", "");
        check("<think>a</think><think>b</think>c", "ab", "c");
    }

    /// SPEC 7.4: a template that opens the tag leaves only the closing one to the reply.
    #[test]
    fn closing_tags_alone() {
        check("hm\n</think>\n\nyes", "hm\n", "yes");
        check("hm.</think>\nyes", "hm.", "yes");
        check("hm</think>", "hm", "");
        check("</think>\n\nyes", "", "yes");
        check("hm\n[/THINK]yes", "hm\n", "yes");
        for text in [
            "The tag `</think>` ends it.",
            "Write </think> behind it.",
            "x\n```\n</think>\n```\ny",
            "x\n> </think>\ny",
        ] {
            check(text, "", text);
        }
        let long = "x".repeat(UNOPENED_BYTES_MAX + 1);
        let mut splitter = ThinkSplitter::default();
        let heard = split(&mut splitter, &format!("{long}\n</think>\n"));
        assert!(!heard.contains(&Heard::WasThinking));
    }

    /// SPEC 7.4: gpt-oss's own tokens, when its server does not know them.
    #[test]
    fn channels() {
        let analysis = "<|channel|>analysis<|message|>hm<|end|>";
        let answer = "<|start|>assistant<|channel|>final<|message|>yes<|return|>";
        check(&format!("{analysis}{answer}"), "hm", "yes");
        check(answer, "", "yes");
        let call = "<|start|>assistant<|channel|>commentary to=functions.x<|message|>{}<|call|>";
        check(&format!("{analysis}{call}"), "hm", call);
    }

    /// SPEC 7.4: elsewhere it is text.
    #[test]
    fn text() {
        check("a <think>b</think>", "", "a <think>b</think>");
        check("<thin", "", "<thin");
        check("<thinker>a", "", "<thinker>a");
        check("", "", "");
        check("  a", "", "  a");
        let wide = " ".repeat(LEAD_BYTES_MAX + 1);
        check(&format!("{wide}<think>a"), "", &format!("{wide}<think>a"));
    }
}
