//! Lists of servers, as people and programs see them.

#![allow(clippy::unwrap_used)]

use super::*;

fn row(alias: &str, place: Place) -> Row {
    Row {
        alias: alias.to_owned(),
        place,
        by: By::User("config.toml:1:1".to_owned()),
        tools: 12,
        doing: Doing::Connected,
        state: "connected 2025-11-25".to_owned(),
        problem: None,
        protocol: Some("2025-11-25".to_owned()),
        calls_itself: None,
        remarks: Vec::new(),
    }
}

fn command(words: &[&str]) -> Place {
    Place::Command(words.iter().map(|&word| word.to_owned()).collect())
}

fn rows() -> [Row; 4] {
    [
        row(
            "git",
            command(&["/opt/venv/bin/mcp-server-git", "--repository", "my notes"]),
        ),
        row(
            "files",
            command(&[
                "/usr/bin/node",
                "/a/long/way/to/some/server-filesystem/dist/index.js",
                "/srv",
            ]),
        ),
        Row {
            by: By::Session,
            tools: 1,
            remarks: vec!["a tool without a name is left out".to_owned()],
            ..row("hole", Place::Url("http://h.example/\u{1b}[31mmcp".to_owned()))
        },
        Row {
            by: By::Project("/p/.aish/config.toml:3:1".to_owned()),
            state: "trying again in 2 s".to_owned(),
            doing: Doing::Waiting,
            problem: Some("connection\u{1b}refused".to_owned()),
            tools: 0,
            ..row("down", Place::Url("http://127.0.0.1:9/mcp".to_owned()))
        },
    ]
}

/// SPEC 6.4, 8.8: alias, place, tools and state, in the columns there are, with nothing hostile in them.
#[test]
fn laid_out() {
    let text = table(&rows(), 80);
    insta::assert_snapshot!(text, @r#"
    git    mcp-server-git --repository 'my notes'  12 tools  connected 2025-11-25
    files  node …/dist/index.js /srv               12 tools  connected 2025-11-25
    hole   http://h.example/\x1b[31mmcp              1 tool  connected 2025-11-25
           a tool without a name is left out
           of this session; `aish mcp add` keeps it
    down   http://127.0.0.1:9/mcp                   0 tools  trying again in 2 s
           connection\x1brefused
           of the project, /p/.aish/config.toml:3:1
    "#);
    for line in text.lines() {
        assert!(line.width() <= 80, "{line}");
    }
}

/// Where nobody looks at columns, nothing is cut.
#[test]
fn whole_in_a_file() {
    let text = table(&rows(), usize::MAX);
    assert!(
        text.contains("node /a/long/way/to/some/server-filesystem/dist/index.js /srv  12 tools"),
        "{text}"
    );
    assert!(text.contains("mcp-server-git --repository 'my notes'"), "{text}");
}

#[test]
fn narrow() {
    let shown = |words: &[&str]| shortened(&command(words), 20);
    assert_eq!(shown(&["/bin/cat"]), "cat");
    assert_eq!(shown(&["cat", "/very/long/way/to/x"]), "cat …/way/to/x");
    assert_eq!(shown(&["cat", "/very/longer/way/a/b/index.js"]), "cat …/a/b/index.js");
    assert_eq!(shown(&["cat", "/srv", "/very/long/way/to/x"]), "cat /srv …/way/to/x");
    assert_eq!(shown(&["program", "with", "many", "arguments"]), "program with many a…");
    assert_eq!(shown(&["p", ""]), "p ''");
    assert_eq!(shown(&["/"]), "/");
    assert_eq!(shown(&["漢漢漢漢漢漢漢漢漢漢漢漢漢"]), "漢漢漢漢漢漢漢漢漢…");
}

/// Programs get the whole command, one word for the state, and null where there is nothing.
#[test]
fn as_json() {
    let [git, _, _, down] = rows();
    let git = git.json();
    assert_eq!(git["command"][0], "/opt/venv/bin/mcp-server-git");
    assert_eq!(
        (&git["url"], &git["state"], &git["tools"]),
        (&Value::Null, &"connected".into(), &12.into())
    );
    assert_eq!(git["configured_at"], "config.toml:1:1");
    let down = down.json();
    assert_eq!(
        (&down["state"], &down["problem"]),
        (&"waiting".into(), &"connection\u{1b}refused".into())
    );
    assert_eq!(down["configured_by"], "project");
}
