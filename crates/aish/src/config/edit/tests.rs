//! What is written into the user's file, and what of theirs stays.

#![allow(clippy::unwrap_used)]
use super::*;
use std::fs;

fn allow(text: &str) -> String {
    let edited = with_rule(text, RuleList::Allow, "bash(make test)").unwrap().unwrap();
    let read = edited.parse::<DocumentMut>().unwrap();
    let rules = read["approval"]["allow"].as_array().unwrap();
    assert_eq!(rules.iter().last().unwrap().as_str(), Some("bash(make test)"));
    edited
}

/// SPEC 5.3, 10.1: saving a rule keeps every comment and the layout.
#[test]
fn comments_survive() {
    insta::assert_snapshot!(allow(r#"# mine
default_model = "desk"   # the one on the desk

[approval] # careful
mode = "ask"
# what I trust
allow = [
    "file_write(notes/*)", # my notes
    # only this one
    "bash(cargo test)", # often
]  # end

[shell]
confirm_cmd = true
"#), @r#"
# mine
default_model = "desk"   # the one on the desk

[approval] # careful
mode = "ask"
# what I trust
allow = [
    "file_write(notes/*)", # my notes
    # only this one
    "bash(cargo test)", # often
    "bash(make test)",
]  # end

[shell]
confirm_cmd = true
"#);
}

#[test]
fn every_layout_takes_a_rule() {
    let layouts = [
        "",
        "# only a comment",
        "[approval]",
        "[approval]\nallow = []",
        "[approval]\nallow = [\"a\"] # why",
        "[approval]\nallow = [\"a\", ]",
        "[approval]\nallow = [ # why\n]",
        "[approval]\nallow = [\n  \"a\" # no comma\n]",
        "[approval]\nallow = [\n\t\"a\",\n\t# last words\n]",
        "approval = { mode = \"ask\" }",
        "approval.mode = \"ask\"",
        "approval.allow = [\"a\"]",
        "[shell]\nconfirm_cmd = true\n[mcp]",
    ];
    for text in layouts {
        let edited = allow(text);
        for comment in text.split('#').skip(1) {
            assert!(edited.contains(comment.lines().next().unwrap()), "{text}\n{edited}");
        }
    }
    assert_eq!(
        allow("[approval]\nallow = [\"a\"]\n"),
        "[approval]\nallow = [\"a\", \"bash(make test)\"]\n"
    );
}

/// SPEC 7.1, 10.1: what a model was found to be is written beside what stands there; comments, order and what the user
/// insists on stay.
#[test]
fn settings_of_a_model() {
    let set = |text: &str, name: &str| {
        let settings = [("images", Value::from(false)), ("context_window", Value::from(8192))];
        with_model(text, name, &settings)
    };
    let text =
        "# mine\n[models.desk] # the desk\nmodel = \"m\"\nimages = true # I hope\n\n[shell]\nconfirm_cmd = true\n";
    let edited = set(text, "desk").unwrap().unwrap();
    insta::assert_snapshot!(edited, @r#"
        # mine
        [models.desk] # the desk
        model = "m"
        images = true # I hope
        context_window = 8192

        [shell]
        confirm_cmd = true
    "#);
    assert_eq!(set(&edited, "desk"), Ok(None));
    insta::assert_snapshot!(set("default_model = \"x\"\n", "llama.cpp/m").unwrap().unwrap(), @r#"
        default_model = "x"

        [models."llama.cpp/m"]
        images = false
        context_window = 8192
    "#);
    for odd in [
        "models.desk.model = 'm'",
        "models = { desk = { model = 'm' } }",
        "[models]\ndesk = { model = 'm' }",
    ] {
        let edited = set(odd, "desk").unwrap().unwrap();
        let read: DocumentMut = edited.parse().unwrap();
        assert_eq!(
            read["models"]["desk"]["context_window"].as_integer(),
            Some(8192),
            "{edited}"
        );
        assert_eq!(read["models"]["desk"]["model"].as_str(), Some("m"), "{edited}");
    }
    assert_eq!(set("models = 3", "desk").unwrap_err(), "`models` is not a table");
    assert_eq!(
        set("models.desk = 3", "desk").unwrap_err(),
        "`models.desk` is not a table"
    );
}

/// SPEC 10.1: a file of another world keeps its line ends.
#[test]
fn line_ends_survive() {
    let root = tempfile::tempdir().unwrap();
    let file = root.path().join("config.toml");
    let text = "# mine\r\n[models.desk]\r\nmodel = 'm' # this\r\n\r\n[shell]\r\nconfirm_cmd = true\r\n";
    fs::write(&file, text).unwrap();
    let rule = Rule::parse("bash(ls)").unwrap();
    add_rule(&file, RuleList::Allow, &rule).unwrap();
    let settings = [("images", Value::from(false))];
    set_model(&file, "desk", &settings, &Environment::default()).unwrap();
    let edited = fs::read_to_string(&file).unwrap();
    assert_eq!(
        edited.matches('\n').count(),
        edited.matches("\r\n").count(),
        "{edited:?}"
    );
    assert!(
        edited.contains("model = 'm' # this\r\nimages = false\r\n"),
        "{edited:?}"
    );
    assert_eq!(
        edited.matches("\r\n").count(),
        text.matches("\r\n").count() + 4,
        "{edited:?}"
    );
}

/// SPEC 10.1, 10.4: nothing is written that aish would not start with; the file stays as it was, and is told why.
#[test]
fn what_would_be_wrong_is_not_written() {
    let root = tempfile::tempdir().unwrap();
    let file = root.path().join("config.toml");
    fs::write(&file, "default_model = 'found'\n").unwrap();
    let set = |name: &str, key: &'static str, value: Value| {
        let settings = [("model", Value::from("m")), (key, value)];
        set_model(&file, name, &settings, &Environment::default())
            .unwrap_err()
            .to_string()
    };
    for (message, expect) in [
        (set("a b", "images", false.into()), "wrong name \"a b\""),
        (
            set("x", "base_url", "http://bob:hunter2@h".into()),
            "base_url: expected an http or https address",
        ),
        (
            set("x", "context_window", 0.into()),
            "context_window: expected a whole number",
        ),
        (set("x", "images", false.into()), "default_model: no model \"found\""),
    ] {
        assert!(
            message.contains("not saved in ") && message.contains(expect),
            "{message}"
        );
        assert!(!message.contains("hunter2"), "{message}");
    }
    assert_eq!(fs::read_to_string(&file).unwrap(), "default_model = 'found'\n");
}

/// SPEC 8.8: a name out of a hostile list cannot hide in the file.
#[test]
fn what_cannot_be_seen_is_written_as_an_escape() {
    let settings = [("model", text_value("a\u{202e}b"))];
    let text = with_model("", "x", &settings).unwrap().unwrap();
    assert_eq!(text, "[models.x]\nmodel = \"a\\u202eb\"\n");
}

#[test]
fn a_rule_is_added_once() {
    let text = allow("");
    assert_eq!(with_rule(&text, RuleList::Allow, "bash(make test)"), Ok(None));
    assert!(with_rule(&text, RuleList::Deny, "bash(make test)").unwrap().is_some());
}

/// SPEC 10.4: a file that cannot be added to is left alone, and the error says where.
#[test]
fn a_malformed_file_is_left_alone() {
    let wrong = |text| with_rule(text, RuleList::Allow, "x").unwrap_err();
    assert!(wrong("a = 1\nb = = 2").starts_with("line 2 is not TOML: "));
    assert_eq!(wrong("approval = 3"), "`approval` is not a table");
    assert_eq!(wrong("[approval]\nallow = \"x\""), "`approval.allow` is not a list");
    let root = tempfile::tempdir().unwrap();
    let file = root.path().join("config.toml");
    fs::write(&file, "a = = 1").unwrap();
    let rule = Rule::parse("bash(ls)").unwrap();
    assert!(add_rule(&file, RuleList::Allow, &rule).is_err());
    assert_eq!(fs::read_to_string(&file).unwrap(), "a = = 1");
}

/// SPEC 10.1, 10.5: the file is made where there is none, private; many writers lose nothing.
#[test]
fn writers_at_once_lose_nothing() {
    use std::os::unix::fs::PermissionsExt as _;
    let root = tempfile::tempdir().unwrap();
    let file = root.path().join("new/config.toml");
    std::thread::scope(|scope| {
        for n in 0..8 {
            let file = &file;
            scope.spawn(move || {
                let rule = Rule::parse(&format!("bash(echo {n})")).unwrap();
                assert_eq!(add_rule(file, RuleList::Allow, &rule).unwrap(), Edited::Written);
            });
        }
    });
    let text = fs::read_to_string(&file).unwrap();
    assert!((0..8).all(|n| text.contains(&format!("\"bash(echo {n})\""))), "{text}");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
}
