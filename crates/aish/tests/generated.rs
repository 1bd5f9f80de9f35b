//! `aish completions` and `aish man`, read by the programs they are made for.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::path::Path;
use std::process::Command;
use support::sandbox::Sandbox;

/// Runs a script in a shell that reads none of its start-up files.
fn run(shell: &str, arguments: &[&str], script: &str) -> String {
    let output = Command::new(shell)
        .args(arguments)
        .args(["-c", script])
        .output()
        .unwrap_or_else(|error| panic!("{shell}: {error}"));
    assert!(
        output.stderr.is_empty(),
        "{shell}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

/// The completions for a shell, in a file.
fn completions(sandbox: &Sandbox, shell: &str) -> String {
    let path = sandbox.path(format!("{shell}-completions"));
    std::fs::write(&path, sandbox.run(&["completions", shell]).exits(0).stdout).unwrap();
    path.display().to_string()
}

/// SPEC 8.9: bash completes commands, commands of commands, and options.
#[test]
fn bash() {
    let sandbox = Sandbox::new();
    let path = completions(&sandbox, "bash");
    let check = |words: &str, current: &str, expect: &str| {
        let script = format!(
            "source {path}; COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); _aish aish '{current}' x; \
             echo \"${{COMPREPLY[@]}}\""
        );
        assert_eq!(run("bash", &["--norc"], &script), format!("{expect}\n"), "{words}");
    };
    check("aish sess", "sess", "sessions");
    check("aish sessions ex", "ex", "export");
    check("aish --app", "--app", "--approval");
    check("aish completions z", "z", "zsh");
}

/// SPEC 8.9: fish completes them, and says what they are.
#[test]
fn fish() {
    let sandbox = Sandbox::new();
    let path = completions(&sandbox, "fish");
    let offered = run(
        "fish",
        &["--no-config"],
        &format!("source {path}; complete -C 'aish sess'"),
    );
    assert_eq!(offered, "sessions\tList, show or export sessions\n");
}

/// SPEC 8.9: zsh takes them as the completion of aish.
#[test]
fn zsh() {
    let sandbox = Sandbox::new();
    let path = completions(&sandbox, "zsh");
    let script = format!("autoload -U compinit; compinit -D -u; source {path}; print $_comps[aish]; whence -w _aish");
    assert_eq!(run("zsh", &["-f"], &script), "_aish\n_aish: function\n");
    assert_eq!(run("zsh", &["-f", "-n"], &format!("source {path}")), "");
}

/// SPEC 8.9: there is a page for aish and for each command, and no page has a mistake in it.
#[test]
fn manual_pages() {
    let sandbox = Sandbox::new();
    let folder = sandbox.path("man");
    sandbox.run(&["man", &folder.display().to_string()]).exits(0);
    let page = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
    assert_eq!(sandbox.run(&["man"]).exits(0).stdout, page("aish.1"));
    for name in [
        "aish.1",
        "aish-resume.1",
        "aish-sessions-export.1",
        "aish-mcp-add.1",
        "aish-man.1",
    ] {
        assert!(page(name).contains(".SH NAME"), "{name}");
    }
    for entry in std::fs::read_dir(&folder).unwrap() {
        lint(&entry.unwrap().path());
    }
    let aish = page("aish.1");
    for part in [
        r"\-\-approval",
        "aish\\-sessions(1)",
        ".SH EXAMPLES\n.nf\n  aish ",
        "Exit codes: 0 done",
    ] {
        assert!(aish.contains(part), "{part}: {aish}");
    }
}

/// What groff has to say about a page, where it is there.
fn lint(page: &Path) {
    let Ok(output) = Command::new("groff")
        .args(["-man", "-ww", "-z", "-Tutf8"])
        .arg(page)
        .output()
    else {
        return;
    };
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.is_empty(), "{}: {said}", page.display());
}
