//! What was typed in all sessions.

use super::{append, fixtures, says, session};
use aish_core::event::{Body, Command, Draft, TurnStarted};
use aish_store::{TYPED_CHARS_MAX, TypedKind, TypedLine};

fn ran(line: &str, directory: &str) -> Draft {
    let command = Command {
        line: line.to_owned(),
        directory: directory.to_owned(),
        output: "a long story".to_owned(),
        ..Command::default()
    };
    Draft::new(0, format!("{line} (exit 0)"), Body::Command(command))
}

fn begun(model: &str, directory: &str) -> Draft {
    let data = TurnStarted {
        model: model.to_owned(),
        directory: Some(directory.to_owned()),
        ..TurnStarted::default()
    };
    Draft::turn_started(1, data)
}

fn texts(lines: &[TypedLine]) -> Vec<&str> {
    lines.iter().map(|line| line.text.as_str()).collect()
}

/// SPEC 8.9: the history is what was typed in all sessions, commands and questions, the newest first and each once.
#[tokio::test]
async fn the_newest_lines_of_all_sessions() {
    for fixture in fixtures() {
        let store = fixture.store.as_ref();
        let early = vec![ran("make", "/a"), begun("desk", "/b"), says("why?")];
        append(store, &session(1), 0, early).await.unwrap();
        let elsewhere = vec![says("older"), ran("ls", "/c")];
        append(store, &session(2), 0, elsewhere).await.unwrap();
        append(store, &session(1), 3, vec![ran("make", "/d"), says("  ")])
            .await
            .unwrap();
        let lines = store.typed(10, "nobody").await.unwrap();
        assert_eq!(lines.len(), 4, "{}: {lines:?}", fixture.name);
        let newest = TypedLine {
            text: "make".to_owned(),
            kind: TypedKind::Command,
            time: 4,
            directory: "/d".to_owned(),
        };
        assert_eq!(lines[0], newest, "{}", fixture.name);
        let question = lines.iter().find(|line| line.text == "why?").unwrap();
        assert_eq!((question.kind, question.directory.as_str()), (TypedKind::Message, "/b"));
        assert!(
            lines
                .iter()
                .any(|line| line.text == "older" && line.directory.is_empty())
        );
        assert_eq!(texts(&store.typed(1, "nobody").await.unwrap()), ["make"]);
    }
}

/// SPEC 8.9: what a program said through aish, what is too long to have been typed and what begins with a space is nobody's history.
#[tokio::test]
async fn what_nobody_typed_is_left_out() {
    for fixture in fixtures() {
        let store = fixture.store.as_ref();
        let long = "x".repeat(TYPED_CHARS_MAX);
        let drafts = vec![
            begun("program", "/"),
            says("a program's words"),
            says(&long),
            says(&format!("{long}x")),
            says("ä line"),
            says(" begun with a space"),
        ];
        append(store, &session(1), 0, drafts).await.unwrap();
        let lines = store.typed(10, "program").await.unwrap();
        let mut found = texts(&lines);
        found.sort_unstable();
        assert_eq!(found, [long.as_str(), "ä line"], "{}", fixture.name);
    }
}
