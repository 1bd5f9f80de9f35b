//! What the history keeps, and what it gives back for what was typed.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::shell::known::Knowledge;
use aish_core::event::{Body, Command, Draft, TurnStarted};
use aish_core::id::SessionId;
use aish_shell::route::Corrections;
use aish_store::memory::MemoryStore;
use aish_store::{Durability, Hold};
use reedline::{
    CommandLineSearch, History as _, HistoryItem, HistoryItemId, SearchDirection, SearchFilter, SearchQuery,
};
use std::os::unix::fs::PermissionsExt as _;
use tempfile::TempDir;

struct Fixture {
    folder: TempDir,
    recall: Recall,
}

fn fixture() -> Fixture {
    let folder = tempfile::tempdir().unwrap();
    let router = Router::new(
        Knowledge::of_programs(["git", "ls", "make", "kill"]),
        Corrections::default(),
    );
    let recall = Recall::new(folder.path().join("data/history"), Some(router));
    Fixture { folder, recall }
}

impl Fixture {
    fn type_lines(&mut self, lines: &[&str]) {
        for line in lines {
            self.recall.save(HistoryItem::from_command_line(*line)).unwrap();
        }
    }

    /// What Up gives, again and again, after that was typed.
    fn ups(&self, prefix: &str) -> Vec<String> {
        let mut start_id: Option<HistoryItemId> = None;
        let mut ups = Vec::new();
        loop {
            let query = SearchQuery {
                start_id,
                limit: Some(1),
                filter: SearchFilter::from_text_search(CommandLineSearch::Prefix(prefix.to_owned()), None),
                ..SearchQuery::everything(SearchDirection::Backward, None)
            };
            let Some(item) = self.recall.search(query).unwrap().pop() else {
                return ups;
            };
            start_id = item.id;
            ups.push(item.command_line);
        }
    }

    fn found(&self, query: &str) -> Vec<String> {
        let numbers = self.recall.find(query);
        numbers.iter().filter_map(|number| self.recall.line(*number)).collect()
    }
}

fn ran(line: &str, directory: &str) -> Draft {
    let command = Command {
        line: line.to_owned(),
        directory: directory.to_owned(),
        ..Command::default()
    };
    Draft::new(0, line, Body::Command(command))
}

async fn ledger(drafts: Vec<Draft>) -> MemoryStore {
    let store = MemoryStore::new();
    for (seq, draft) in (0..).zip(drafts) {
        store
            .append(
                &SessionId::new("s"),
                seq,
                vec![draft],
                1_000 + seq,
                Durability::Committed,
                Hold::Nothing,
            )
            .await
            .unwrap();
    }
    store
}

/// SPEC 8.9: what was typed in any session is there, both kinds of line and `:` lines, each once, in the order it was typed last.
#[tokio::test]
async fn all_that_was_typed() {
    let mut before = fixture();
    before.type_lines(&[":models", "why?", ":model desk", ":models"]);
    let mut now = Recall::new(before.folder.path().join("data/history"), None);
    now.save(HistoryItem::from_command_line("ls -l")).unwrap();
    let store = ledger(vec![ran("make", "/a"), ran("ls -l", "/a"), Draft::user(1, "why?")]).await;
    assert_eq!(now.load(&store).await, None);
    let now = Fixture { recall: now, ..before };
    assert_eq!(now.ups(""), ["ls -l", ":models", ":model desk", "why?", "!make"]);
    assert_eq!(now.recall.count_all().unwrap(), 5);
}

/// SPEC 8.9, 10.5: lines that begin with a space are not kept, nor what would act on the terminal; the file is its user's alone.
#[test]
fn what_is_not_kept() {
    let mut fixture = fixture();
    fixture.type_lines(&[
        "",
        "  ",
        "git\x1b[2J",
        "git \u{202e}log",
        ":help",
        "git log\ngit status",
    ]);
    fixture.recall.sent(" git secret");
    fixture.recall.sent("git typed ahead");
    assert_eq!(fixture.ups(""), ["git typed ahead", "git log\ngit status", ":help"]);
    let path = fixture.folder.path().join("data/history");
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let text = std::fs::read_to_string(path).unwrap();
    assert!(text.ends_with("\t:help\n") && text.lines().count() == 1, "{text}");
}

/// A history file of before, and one that has grown too long, are read for what they are still good for.
#[tokio::test]
async fn files_of_before() {
    let fixture = fixture();
    let path = fixture.folder.path().join("data/history");
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let long: String = (0..20_000).map(|n| format!("{n}\t:model m{n}\n")).collect();
    std::fs::write(&path, format!("what is this?\n!ls\n:models\n\u{0}\t:x\n{long}")).unwrap();
    assert_eq!(fixture.recall.load(&MemoryStore::new()).await, None);
    assert_eq!(fixture.ups("").first().map(String::as_str), Some(":model m19999"));
    assert!(std::fs::metadata(&path).unwrap().len() < 64 << 10);
}

/// SPEC 8.1, 8.9: what went to one side never goes to the other because it was recalled: it has its mark where it needs one.
#[tokio::test]
async fn lines_go_where_they_went() {
    let mut fixture = fixture();
    fixture.type_lines(&["gti status", "git status", "?make test", "!why", "what is this?"]);
    let ups = ["what is this?", "!why", "?make test", "git status", "gti status"];
    assert_eq!(fixture.ups(""), ups);
    assert_eq!(fixture.recall.rest("gti"), None, "what was mistyped is no hint");
    let said = vec![
        ran("frobnicate it", "/"),
        Draft::user(1, "ls"),
        Draft::user(2, ":help me"),
    ];
    fixture.recall.load(&ledger(said).await).await;
    let ups = fixture.ups("");
    assert_eq!(
        ups.get(5..),
        Some(&["?:help me", "?ls", "!frobnicate it"].map(str::to_owned)[..])
    );
}

/// SPEC 8.9: Up gives lines that begin as what was typed, of both kinds; a mark asks for one of them.
#[test]
fn prefixes() {
    let mut fixture = fixture();
    fixture.type_lines(&["make test", "make me a sandwich please", "ls", "make test"]);
    assert_eq!(fixture.ups("make"), ["make test", "make me a sandwich please"]);
    assert_eq!(fixture.ups("!ma"), ["!make test"]);
    assert_eq!(fixture.ups("?make "), ["?make me a sandwich please"]);
    assert_eq!(fixture.ups("x"), [""; 0]);
}

/// SPEC 8.9: the hint is the rest of the newest line that begins so, preferring this directory; never of several rows, never of
/// a line that would go somewhere else.
#[tokio::test]
async fn rests() {
    let mut fixture = fixture();
    let begun = TurnStarted {
        directory: Some("/here".to_owned()),
        ..TurnStarted::default()
    };
    let said = vec![
        ran("git log --here", "/here"),
        ran("git log --there", "/there"),
        Draft::turn_started(1, begun),
        Draft::user(1, "how is it here?"),
        Draft::user(1, "how is it elsewhere?"),
        Draft::user(1, "ls is what?"),
        ran("git a\nb", "/here"),
    ];
    fixture.recall.load(&ledger(said).await).await;
    fixture.recall.stand_in(Path::new("/here"));
    let check = |fixture: &Fixture, typed: &str, expect: Option<&str>| {
        assert_eq!(fixture.recall.rest(typed).as_deref(), expect, "{typed:?}");
    };
    check(&fixture, "git l", Some("og --here"));
    check(&fixture, "git log --t", Some("here"));
    check(&fixture, "how is ", Some("it here?"));
    check(&fixture, "how is it e", Some("lsewhere?"));
    check(&fixture, "git a", None);
    check(&fixture, "git log --here", None);
    check(&fixture, " git l", None);
    check(&fixture, "", None);
    check(&fixture, "!git l", Some("og --here"));
    check(&fixture, "?git l", None);
    fixture.type_lines(&["git list", "?git life"]);
    check(&fixture, "git li", Some("st"));
    check(&fixture, "?git l", Some("ife"));
    fixture.type_lines(&[":model desk"]);
    check(&fixture, ":mo", Some("del desk"));
}

/// SPEC 8.9: a search finds both kinds of line, the best first and of equally good ones the newest; a mark asks for one kind.
#[test]
fn searches() {
    let mut fixture = fixture();
    fixture.type_lines(&["git commit", "ls omit", "what does git commit do?", ":model gc"]);
    let all = [":model gc", "what does git commit do?", "ls omit", "git commit"];
    assert_eq!(fixture.found(""), all);
    assert_eq!(
        fixture.found("omit"),
        ["ls omit", "what does git commit do?", "git commit"]
    );
    assert_eq!(fixture.found("!omit"), ["ls omit", "git commit"]);
    assert_eq!(fixture.found("? commit"), ["what does git commit do?"]);
    assert_eq!(fixture.found(":gc"), [":model gc"]);
    assert_eq!(fixture.found("nowhere to be found"), [""; 0]);
}

/// Whatever is searched for, the numbers given are those of lines.
#[test]
fn lines_that_are_gone() {
    let mut fixture = fixture();
    fixture.type_lines(&["ls", "git log"]);
    let numbers = fixture.recall.find("");
    fixture.type_lines(&["ls"]);
    assert_eq!(fixture.recall.look_up(&numbers).len(), 1);
    assert_eq!(fixture.recall.line(i64::MIN), None);
}
