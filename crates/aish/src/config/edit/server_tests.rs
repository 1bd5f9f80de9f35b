//! Servers that come into the user's file and go out of it.

#![allow(clippy::unwrap_used)]

use super::*;
use std::fs;

const FILE: &str = r#"# mine
default_model = "desk"

[mcp] # the servers
max_tool_depth = 4

# Version control.
# All of it.

# the git one
[mcp.servers.git] # often
command = ["git-server"] # here

[mcp.servers.git.env]
A = "b"

# asked about never
[mcp.auto_approve]
"git.*" = true
# last words
"#;

fn http() -> NewServer {
    NewServer {
        auth_env: Some("TOKEN".to_owned()),
        headers: vec![
            ("X-Team".to_owned(), Secret::new("${TEAM:-tools}")),
            ("X.Key".to_owned(), Secret::new("hunter2hunter2")),
        ],
        timeout_s: Some(5),
        protocol: Some("2025-06-18".to_owned()),
        disabled_tools: vec!["drop".to_owned()],
        required: true,
        ..NewServer::at("hole", Place::Url("http://h.example/mcp?api_key=hunter2".to_owned()))
    }
}

fn stdio() -> NewServer {
    let words = ["npx", "-y", "a \"quoted\" word\u{202e}"];
    NewServer {
        env: vec![("NOTES".to_owned(), Secret::new("/srv/notes"))],
        trusted: true,
        ..NewServer::at("notes", Place::Command(words.map(str::to_owned).to_vec()))
    }
}

/// SPEC 6.4, 10.1: a server is switched off and on where it stands; comments and layout stay, another name changes nothing.
#[test]
fn switched() {
    let off = with_switch(FILE, "git", Switch::Off).unwrap().unwrap();
    let here = "command = [\"git-server\"] # here\n";
    assert_eq!(off, FILE.replace(here, &format!("{here}enabled = false\n")));
    assert_eq!(with_switch(&off, "git", Switch::Off).unwrap().unwrap(), off);
    let noted = off.replace("enabled = false", "# since May\nenabled =  false # broken");
    let on = with_switch(&noted, "git", Switch::On).unwrap().unwrap();
    assert_eq!(on, noted.replace("enabled =  false", "enabled =  true"));
    let inline = "mcp.servers.a = { command = ['x'] }";
    let off = with_switch(inline, "a", Switch::Off).unwrap().unwrap();
    assert_eq!(off.trim_end(), "mcp.servers.a = { command = ['x'] , enabled = false }");
    assert_eq!(with_switch(FILE, "hub", Switch::Off), Ok(None));
    assert_eq!(with_switch("mcp = 3", "hub", Switch::Off), Ok(None));
}

/// SPEC 6.4, 10.1: servers are added below the others; comments, order and layout stay.
#[test]
fn added() {
    let edited = with_servers(FILE, &[http(), stdio()]).unwrap().unwrap();
    insta::assert_snapshot!(edited, @r#"
    # mine
    default_model = "desk"

    [mcp] # the servers
    max_tool_depth = 4

    # Version control.
    # All of it.

    # the git one
    [mcp.servers.git] # often
    command = ["git-server"] # here

    [mcp.servers.git.env]
    A = "b"

    [mcp.servers.hole]
    url = "http://h.example/mcp?api_key=hunter2"
    auth_env = "TOKEN"
    headers = { X-Team = "${TEAM:-tools}", "X.Key" = "hunter2hunter2" }
    timeout_s = 5
    protocol = "2025-06-18"
    disabled_tools = ["drop"]
    required = true

    [mcp.servers.notes]
    command = ["npx", "-y", "a \"quoted\" word\u202e"]
    env = { NOTES = "/srv/notes" }
    trusted = true

    # asked about never
    [mcp.auto_approve]
    "git.*" = true
    # last words
    "#);
    assert_eq!(with_servers(&edited, &[stdio()]), Ok(None));
}

/// SPEC 10.1: however the file is written, it takes a server, and nothing of it gets lost.
#[test]
fn every_layout_takes_a_server() {
    for text in [
        "",
        "# only a comment",
        "[mcp]",
        "[mcp.servers]",
        "[mcp.servers] # these\n",
        "mcp = { max_tool_depth = 2 }",
        "mcp.servers.x.url = \"http://h\" # why",
        "[mcp]\nservers.x.url = \"http://h\"",
        "[mcp.servers]\nx = { url = \"http://h\" }",
        "[mcp.servers.x]\nurl = \"http://h\"\n[shell]\nconfirm_cmd = true # yes",
    ] {
        let edited = with_servers(text, &[stdio()]).unwrap().unwrap();
        let read: toml_edit::DocumentMut = edited.parse().unwrap();
        let command = read["mcp"]["servers"]["notes"]["command"].as_array().unwrap();
        assert_eq!(command.len(), 3, "{edited}");
        if text.contains("http://h") {
            assert_eq!(
                read["mcp"]["servers"]["x"]["url"].as_str(),
                Some("http://h"),
                "{edited}"
            );
        }
        for comment in text.split('#').skip(1) {
            assert!(edited.contains(comment.lines().next().unwrap()), "{edited}");
        }
        assert!(without_server(&edited, "notes").unwrap().is_some(), "{edited}");
    }
    assert_eq!(with_servers("mcp = 3", &[stdio()]).unwrap_err(), "`mcp` is not a table");
    assert_eq!(
        with_servers("[mcp]\nservers = 3", &[stdio()]).unwrap_err(),
        "`mcp.servers` is not a table"
    );
}

/// SPEC 6.4, 10.1: what is taken out takes its own comment along, and no other.
#[test]
fn taken_out() {
    let edited = without_server(FILE, "git").unwrap().unwrap();
    insta::assert_snapshot!(edited, @r#"
    # mine
    default_model = "desk"

    [mcp] # the servers
    max_tool_depth = 4

    # Version control.
    # All of it.

    # asked about never
    [mcp.auto_approve]
    "git.*" = true
    # last words
    "#);
    assert_eq!(without_server(&edited, "git"), Ok(None));
    assert_eq!(without_server("", "git"), Ok(None));
    assert_eq!(without_server("mcp = 3", "git"), Ok(None));
    let last = "a = 1\n# kept\n\n# goes\n[mcp.servers.git]\nurl = \"u\"\n# end\n";
    assert_eq!(without_server(last, "git").unwrap().unwrap(), "a = 1\n# kept\n# end\n");
    let added = with_servers(FILE, &[http()]).unwrap().unwrap();
    assert_eq!(without_server(&added, "hole").unwrap().unwrap(), FILE);
}

/// SPEC 10.5: what is shown of a server holds no secret, and every variable.
#[test]
fn shown_without_secrets() {
    insta::assert_snapshot!(format!("{}{}", http().shown(), stdio().shown()), @r#"
    [mcp.servers.hole]
    url = "http://h.example/mcp?api_key=[redacted]"
    auth_env = "TOKEN"
    headers = { X-Team = "${TEAM:-tools}", "X.Key" = "[redacted]" }
    timeout_s = 5
    protocol = "2025-06-18"
    disabled_tools = ["drop"]
    required = true
    [mcp.servers.notes]
    command = ["npx", "-y", "a \"quoted\" word\u202e"]
    env = { NOTES = "[redacted]" }
    trusted = true
    "#);
    let literals: Vec<String> = http().literals().map(|(name, _)| name.to_owned()).collect();
    assert_eq!(literals, ["X.Key"]);
}

/// SPEC 10.1, 10.4: a file that aish would not start with is not written.
#[test]
fn what_would_be_wrong_is_not_written() {
    let root = tempfile::tempdir().unwrap();
    let file = root.path().join("config.toml");
    fs::write(&file, FILE.replace("default_model = \"desk\"\n", "")).unwrap();
    let before = fs::read_to_string(&file).unwrap();
    let add = |server: NewServer| add_servers(&file, &[server], &Environment::default());
    for (server, expect) in [
        (
            NewServer::at("A b", Place::Url("http://h".to_owned())),
            "the alias of a server begins",
        ),
        (
            NewServer::at("a", Place::Url("ftp://h".to_owned())),
            "expected an http or https address",
        ),
        (
            NewServer::at("a", Place::Url("http://bob:hunter2@h".to_owned())),
            "expected an http or https address",
        ),
        (NewServer::at("a", Place::Command(Vec::new())), "without a program"),
        (
            NewServer {
                timeout_s: Some(0),
                ..stdio()
            },
            "timeout_s",
        ),
        (
            NewServer {
                protocol: Some("1999".to_owned()),
                ..stdio()
            },
            "protocol",
        ),
    ] {
        let message = add(server).unwrap_err().to_string();
        assert!(message.contains(expect) && !message.contains("hunter2"), "{message}");
        assert_eq!(fs::read_to_string(&file).unwrap(), before);
    }
    assert_eq!(add(stdio()).unwrap(), Edited::Written);
    assert_eq!(add(stdio()).unwrap(), Edited::Unchanged);
    assert_eq!(
        remove_server(&file, "notes", &Environment::default()).unwrap(),
        Edited::Written
    );
    assert_eq!(fs::read_to_string(&file).unwrap(), before);
}
