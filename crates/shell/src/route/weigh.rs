//! Signs of a sentence against signs of a command, in points.
//!
//! A sign of a sentence is a word that seldom stands among arguments, punctuation, a language other than English; a sign of a
//! command is an option, a path that is there, a glob, a variable, quotes. What counts how much depends on what the command
//! takes ([`Expects`]).

use super::Known;
use super::expects::{Expects, TARGETS};
use super::lex::{Quotes, Word};
use super::words::{
    English, LANGUAGES, count_foreign, english, is_decisive, is_foreign, is_other_script, is_preposition,
};

/// How many words of a line are weighed.
const WORDS_WEIGHED_MAX: usize = 24;

const STRONG: u32 = 4;
const WEAK: u32 = 2;
const PREPOSITION: u32 = 5;
const TOWARDS: u32 = 9;
const DECISIVE: u32 = 12;
const TROUBLE: u32 = 4;
const CONTENT: u32 = 1;
const PUNCTUATION: u32 = 4;
const ASKING: u32 = 6;
const FOREIGN: u32 = 3;
const SCRIPT: u32 = 5;
const ACCENT: u32 = 2;

/// From how many words on what follows a tool without one of its subcommands is no alias of one.
const LONG_WORDS_MIN: usize = 3;

/// How long an alias of a subcommand usually is at most, in bytes.
const ALIAS_BYTES_MAX: usize = 2;

const OPTION: u32 = 3;
const PATH: u32 = 3;
const PATH_BARE: u32 = 1;
const EXPANSION: u32 = 4;
const QUOTED: u32 = 2;
const QUOTED_VALUE: u32 = 4;
const NAME: u32 = 2;
const NUMBER: u32 = 4;

/// What was found.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Signs {
    /// Points for a sentence.
    pub sentence: u32,
    /// Points for a command.
    pub command: u32,
    /// How many words are those of sentences in any language.
    pub strong: u32,
    /// How many words are plain ones, listed or not.
    pub plain: u32,
    /// How many are common words.
    pub content: u32,
}

/// How a word looks, before what it means.
enum Shape {
    Option,
    Expansion,
    Quoted,
    /// In backticks: more often marked as code in a sentence than run for its output.
    Code,
    Path,
    /// With dots, digits, slashes or the like, as files, hosts and versions have.
    Name,
    Number,
    /// A sign or two.
    Symbol,
    /// Letters, perhaps with punctuation after them.
    Plain,
}

fn shape(word: &Word<'_>, head: &str, known: &impl Known) -> Shape {
    let text = word.text;
    let bytes = text.as_bytes();
    if word.quotes == Quotes::Some {
        return if text.contains('`') { Shape::Code } else { Shape::Quoted };
    }
    let rest = text.trim_start_matches('-');
    if bytes.first() == Some(&b'-') && (rest.is_empty() || rest.starts_with(|c: char| c.is_ascii_alphanumeric())) {
        return Shape::Option;
    }
    if known.is_path(text) {
        return Shape::Path;
    }
    let plain = text.trim_matches(is_punctuation);
    if plain.is_empty() {
        return if matches!(text, "." | "..") {
            Shape::Path
        } else {
            Shape::Plain
        };
    }
    if plain
        .bytes()
        .all(|byte| byte.is_ascii_punctuation() && byte != b'*' && byte != b'/' && byte != b'~')
    {
        return Shape::Symbol;
    }
    if bytes.first() == Some(&b'!') && plain.len() > 1 {
        return Shape::Expansion;
    }
    if bytes
        .iter()
        .any(|byte| matches!(byte, b'$' | b'*' | b'\\' | b'[' | b']' | b'{' | b'}' | b'^'))
    {
        return Shape::Expansion;
    }
    if plain.bytes().all(|byte| byte.is_ascii_digit()) {
        return Shape::Number;
    }
    // `and/or`: nothing of that name is there.
    let either = plain.split('/').count() == 2
        && plain
            .split('/')
            .all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphabetic()));
    if either {
        return Shape::Plain;
    }
    if matches!(bytes.first(), Some(b'/' | b'~' | b'+' | b'%' | b'@' | b':')) || plain.bytes().any(is_of_names) {
        return Shape::Name;
    }
    // `FOO`: a variable.
    if takes_variables(head) && plain.len() > 1 && plain.bytes().all(|byte| byte.is_ascii_uppercase()) {
        return Shape::Name;
    }
    Shape::Plain
}

/// Characters around words of a sentence.
fn is_punctuation(character: char) -> bool {
    matches!(
        character,
        ',' | '.'
            | '?'
            | '!'
            | ':'
            | ';'
            | '('
            | ')'
            | '…'
            | '？'
            | '。'
            | '，'
            | '！'
            | '¿'
            | '¡'
            | '؟'
            | '“'
            | '”'
            | '«'
            | '»'
    )
}

fn is_of_names(byte: u8) -> bool {
    byte.is_ascii_digit()
        || matches!(
            byte,
            b'/' | b'.' | b'_' | b'@' | b':' | b'=' | b'%' | b'+' | b'~' | b'#'
        )
}

/// Weighs `words`, the arguments of something that takes what `expects` says.
pub(super) fn weigh(words: &[Word<'_>], expects: Expects, head: &str, known: &impl Known) -> Signs {
    let mut signs = Signs::default();
    let mut foreign = [0_u8; LANGUAGES];
    let mut pattern_taken = !matches!(expects, Expects::Pattern);
    let mut after_option = false;
    let mut scripts = 0;
    let mut subcommand = false;
    count_foreign(head, &mut foreign);
    let words = words.get(..words.len().min(WORDS_WEIGHED_MAX)).unwrap_or(words);
    for (at, word) in words.iter().enumerate() {
        let next = words.get(at + 1);
        if let Expects::Subcommand(list) = expects
            && (at == 0 || (at == 1 && subcommand && head != "git"))
            && list.contains(&word.text)
        {
            subcommand = true;
            continue;
        }
        if !after_option && is_mention(word.text, expects, head, known) {
            signs.sentence += DECISIVE;
            continue;
        }
        signs.sentence += misplaced(at, word.text, expects, head);
        let shape = shape(word, head, known);
        let is_option = matches!(shape, Shape::Option);
        match shape {
            Shape::Option => signs.command += OPTION,
            Shape::Expansion => signs.command += EXPANSION,
            Shape::Code => {
                signs.sentence += if expects == Expects::Numbers && !word.text.contains(' ') {
                    WEAK
                } else {
                    0
                }
            }
            Shape::Quoted => {
                signs.command += if after_option { QUOTED_VALUE } else { QUOTED };
                signs.sentence += if word.text.ends_with(',') { PUNCTUATION } else { 0 };
            }
            Shape::Path => signs.command += path(word.text, expects),
            Shape::Name => {
                signs.command += name(word.text, expects);
                // `/dev/sd?` is a pattern.
                let rooted = word.text.starts_with(['/', '~', '.']);
                signs.sentence += if rooted {
                    0
                } else {
                    punctuation(word.text, next.is_none())
                };
            }
            Shape::Number => signs.command += if expects == Expects::Numbers { NUMBER } else { 0 },
            Shape::Symbol => {}
            Shape::Plain => {
                let pattern = !pattern_taken && (words.len() > 1 || head != "grep");
                let place = Place {
                    expects,
                    pattern,
                    after_option,
                    alone: words.len() == 1,
                    alias: at == 0 && words.len() <= 2 && matches!(expects, Expects::Subcommand(_)),
                    named: subcommand,
                    known,
                };
                scripts += plain(word, next, &mut signs, &mut foreign, &place);
            }
        }
        pattern_taken |= !is_option;
        after_option = is_option;
    }
    let named = subcommand || expects == Expects::Names || (words.len() == 1 && matches!(head, "cd" | "pushd" | "z"));
    others(&mut signs, foreign, scripts, named, expects);
    let long =
        matches!(expects, Expects::Subcommand(_)) && !subcommand && signs.command == 0 && words.len() >= LONG_WORDS_MIN;
    signs.sentence += if long { WEAK } else { 0 };
    signs
}

/// Points for a word that cannot be where it is: what a tool is told first is in lower case, and variables have no dots.
fn misplaced(at: usize, text: &str, expects: Expects, head: &str) -> u32 {
    let shouted =
        at == 0 && matches!(expects, Expects::Subcommand(_)) && text.starts_with(|c: char| c.is_ascii_uppercase());
    let no_variable = takes_variables(head)
        && !matches!(head, "set" | "trap")
        && text.contains(['.', '/'])
        && !text.contains(['=', '$', '"', '\''])
        && !text.starts_with('-');
    if shouted || no_variable { PATH + STRONG } else { 0 }
}

/// Whether a word names a file or a resource for the model, `@notes.md` or `@alias:uri`. Tools that take such a word (`dig @1.1.1.1`,
/// `gcc @options`) have names of their own, or take hosts.
fn is_mention(text: &str, expects: Expects, head: &str, known: &impl Known) -> bool {
    text.strip_prefix('@').is_some_and(|named| {
        named.starts_with(|c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '/' | '~' | '"'))
    }) && english(head).is_some()
        && !matches!(expects, Expects::Hosts | Expects::Subcommand(_))
        && !known.is_path(text)
}

fn takes_variables(head: &str) -> bool {
    matches!(
        head,
        "read" | "export" | "unset" | "local" | "declare" | "readonly" | "typeset" | "set" | "printenv" | "trap"
    )
}

/// Points for something that is there. What is called like a word of a sentence and is there is meant.
fn path(text: &str, expects: Expects) -> u32 {
    if matches!(english(text), Some(English::Strong | English::Weak)) {
        return QUOTED + PATH;
    }
    let bare = text.bytes().all(|byte| byte.is_ascii_alphabetic());
    if matches!(expects, Expects::Targets | Expects::Hosts) {
        0
    } else if bare {
        PATH_BARE
    } else {
        PATH
    }
}

/// Points for a word that looks like a name. Where a file is expected, one of letters and digits (`mp4`) is none that is there.
fn name(text: &str, expects: Expects) -> u32 {
    let of_file =
        matches!(expects, Expects::Files | Expects::FilesOnly) && text.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if of_file { 0 } else { NAME }
}

/// Where a plain word stands.
struct Place<'a, K> {
    expects: Expects,
    /// It is the pattern of a search, which may be any word.
    pattern: bool,
    after_option: bool,
    alone: bool,
    /// It is where a subcommand would be.
    alias: bool,
    /// It follows a subcommand, where names stand.
    named: bool,
    known: &'a K,
}

/// Weighs a plain word; whether it is in a script other than Latin.
fn plain<K: Known>(
    word: &Word<'_>,
    next: Option<&Word<'_>>,
    signs: &mut Signs,
    foreign: &mut [u8; LANGUAGES],
    place: &Place<'_, K>,
) -> u32 {
    let lower = word.text.trim_matches(is_punctuation).to_lowercase();
    if is_decisive(&lower) {
        signs.strong += 1;
        signs.sentence += DECISIVE;
    }
    if place.pattern {
        return 0;
    }
    signs.sentence += punctuation(word.text, next.is_none());
    let of_sentences = matches!(english(&lower), Some(English::Strong | English::Weak)) && !place.alone;
    let is_command = place.expects == Expects::Commands && place.known.kind(word.text).is_some() && !of_sentences;
    if is_command || (place.expects == Expects::Targets && TARGETS.contains(&word.text)) {
        return 0;
    }
    signs.plain += 1;
    // `git co`: an alias.
    if !(place.alias && lower.len() <= ALIAS_BYTES_MAX) {
        count_foreign(&lower, foreign);
    }
    if lower.contains(['\'', '’']) {
        signs.sentence += PUNCTUATION;
    }
    if is_other_script(&lower) {
        return 1;
    }
    if !lower.is_ascii() {
        let name = place.named || matches!(place.expects, Expects::Names | Expects::Files | Expects::Pattern);
        signs.sentence += if name { CONTENT } else { ACCENT };
    }
    signs.strong += u32::from(english(&lower) == Some(English::Strong));
    signs.sentence += points(&lower, next, place);
    signs.content += u32::from(english(&lower).is_some());
    0
}

/// Points for a plain word in lower case, in English or unlisted.
fn points<K>(lower: &str, next: Option<&Word<'_>>, place: &Place<'_, K>) -> u32 {
    let expects = place.expects;
    let single = lower.len() == 1;
    let moment = matches!(lower, "infinity" | "now" | "noon" | "midnight" | "teatime" | "tomorrow");
    if moment && expects == Expects::Numbers {
        return 0;
    }
    let unlisted = if expects == Expects::Numbers {
        WEAK
    } else if !single && matches!(expects, Expects::FilesOnly | Expects::Nothing | Expects::AnyEnglish) {
        CONTENT
    } else {
        0
    };
    match english(lower) {
        // File names of one letter are common, the article before nothing is not.
        Some(English::Weak) if single && next.is_none_or(|next| next.text.len() == 1 || is_symbolic(next.text)) => 0,
        Some(English::Strong) => {
            STRONG
                >> u32::from(
                    (place.after_option && expects == Expects::Pattern)
                        || (lower == "any" && expects == Expects::Words),
                )
        }
        Some(English::Weak) if expects == Expects::Words => 0,
        Some(English::Weak) if matches!(expects, Expects::Any | Expects::Prose) => WEAK,
        Some(English::Weak) if matches!(expects, Expects::Subcommand(_)) => WEAK + CONTENT,
        Some(English::Weak) if matches!(lower, "to" | "into") && next.is_some() => TOWARDS,
        Some(English::Weak) if is_preposition(lower) && next.is_some() => PREPOSITION,
        Some(English::Weak) => WEAK,
        Some(English::Trouble) if place.alone && expects == Expects::Names => CONTENT,
        Some(English::Trouble) => TROUBLE,
        Some(English::Content) if matches!(expects, Expects::Words | Expects::Names) => 0,
        Some(English::Content) => CONTENT.max(unlisted),
        None => unlisted,
    }
}

/// Several words of one language, or of another script.
fn others(signs: &mut Signs, foreign: [u8; LANGUAGES], scripts: u32, named: bool, expects: Expects) {
    let most = u32::from(foreign.into_iter().max().unwrap_or_default());
    if most >= 2 {
        signs.strong += most;
        signs.sentence += most * FOREIGN;
    } else if most == 1 && matches!(expects, Expects::Subcommand(_)) && signs.command == 0 && !named {
        signs.sentence += FOREIGN;
    } else if most == 1 && (signs.plain > 1 || (expects == Expects::Any && signs.plain > 0)) {
        signs.sentence += CONTENT;
    }
    if scripts > u32::from(named) {
        signs.strong += scripts;
        signs.sentence += scripts * SCRIPT;
    }
}

fn is_symbolic(text: &str) -> bool {
    text.starts_with(['-', '/', '.', '~', '$', '*', '"', '\'', '+', '='])
}

/// Points for punctuation after a word.
fn punctuation(text: &str, last: bool) -> u32 {
    let letters = text.chars().any(char::is_alphabetic);
    match text.chars().next_back() {
        Some('?' | '？' | '؟') if last && (letters || text.len() == 1) => ASKING,
        Some('?') if letters => ASKING,
        Some(',' | '，' | '。' | '！') if letters && text.len() > 1 => PUNCTUATION,
        Some('!' | '.' | '…') if letters && text.len() > 1 => WEAK,
        _ => 0,
    }
}

/// Whether `text` begins as a question or a request does: for remarks and lines around code.
pub(super) fn asks(text: &str) -> bool {
    let first = text.split_whitespace().next().unwrap_or_default().to_lowercase();
    let first = first.trim_matches(is_punctuation);
    english(first) == Some(English::Strong) || text.trim_end().ends_with(['?', '？', '؟'])
}

/// Whether `word` is one of a sentence: a common word in English or another language, or of another script.
pub(super) fn is_common(word: &str) -> bool {
    let lower = word.trim_matches(is_punctuation).to_lowercase();
    english(&lower).is_some() || is_foreign(&lower) || !lower.is_ascii()
}

/// How a line begins that no command begins so: with a word that only sentences have.
pub(super) fn begins_sentence(word: &str) -> bool {
    let lower = word.trim_matches(is_punctuation).to_lowercase();
    english(&lower) == Some(English::Strong)
}
