//! Words that are not said, each with what is said instead, and text that must never be committed.

use super::{expect_none, files, root};

/// In Rust and Markdown files, whatever the case; the field's words are in SPEC 1.
const BANNED: [(&str, &str); 13] = [
    ("blacklist", "deny rule"),
    ("whitelist", "allow rule"),
    ("utilize", "use"),
    ("leverage", "use"),
    ("in order to", "to"),
    ("seamless", "say what happens"),
    ("blazingly", "give the figure"),
    ("fixme", "fix it, or name its issue"),
    ("todo:", "do it, or name its issue"),
    ("xxx:", "fix it, or name its issue"),
    ("sanity check", "check"),
    ("god object", "name what it owns"),
    ("please note", "say it"),
];

/// Package registries, in two halves so that this file does not name them: tests and builds must not be told to fetch.
const REGISTRIES: [(&str, &str); 5] = [
    ("index.crates", ".io"),
    ("static.crates", ".io"),
    ("registry.npm", "js.org"),
    ("files.python", "hosted.org"),
    ("deb.debian", ".org"),
];

/// The one file that has to say the words it bans.
const THIS_FILE: &str = "crates/aish/tests/tidy/words.rs";

/// One word per idea.
#[test]
fn words_are_the_house_s() {
    let mut offenders = Vec::new();
    for file in files() {
        if file.path == THIS_FILE || !(file.is_rust() || file.path.ends_with(".md")) {
            continue;
        }
        for (n, line) in file.text.lines().enumerate() {
            let line = line.to_lowercase();
            for (word, instead) in BANNED {
                if line.contains(word) {
                    offenders.push(format!("{}:{}: not \"{}\": {instead}", file.path, n + 1, word));
                }
            }
        }
    }
    expect_none("say it in the words of the house", offenders);
}

/// What is committed is true on every machine.
#[test]
fn nothing_names_this_machine() {
    let mut places = vec![root().to_string_lossy().into_owned()];
    if let Some(home) = std::env::var_os("HOME") {
        // As a folder of that home, so that a home such as /root may be spoken of.
        places.push(format!("{}/.", home.to_string_lossy().trim_end_matches('/')));
    }
    places.extend(REGISTRIES.map(|(name, domain)| format!("{name}{domain}")));
    let mut offenders = Vec::new();
    for file in files().iter().filter(|file| !file.path.ends_with(".lock")) {
        for (n, line) in file.text.lines().enumerate() {
            for place in places
                .iter()
                .filter(|place| place.len() > 2 && line.contains(place.as_str()))
            {
                offenders.push(format!("{}:{}: {place}", file.path, n + 1));
            }
        }
    }
    expect_none("name no place of one machine and no registry", offenders);
}

/// SPEC 12: no key is ever committed. Made-up keys of tests are spelled with `example`, `test` or `fake` in them.
#[test]
fn nothing_holds_a_key() {
    let begins = [
        "sk-ant-api",
        "sk-proj-",
        "sk-or-v1-",
        "ghp_",
        "github_pat_",
        "AKIA",
        "AIzaSy",
        "xoxb-",
        "hf_",
    ];
    let mut offenders = Vec::new();
    for file in files() {
        for (n, line) in file.text.lines().enumerate() {
            for word in line.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '-')) {
                if word.len() >= 36 && begins.iter().any(|begin| word.starts_with(begin)) && !is_made_up(word) {
                    offenders.push(format!("{}:{}: {}…", file.path, n + 1, &word[..12]));
                }
            }
        }
    }
    expect_none("this looks like a key", offenders);
}

/// Repeats itself, or says so: nobody's key.
fn is_made_up(word: &str) -> bool {
    let lower = word.to_lowercase();
    let distinct: std::collections::BTreeSet<char> = lower.chars().collect();
    let ordered = ["0123456789", "abcdefghij"].iter().any(|run| lower.contains(run));
    distinct.len() < 16
        || ordered
        || ["example", "test", "fake", "secret"]
            .iter()
            .any(|says| lower.contains(says))
}
