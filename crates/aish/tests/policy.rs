//! `aish policy`: what the rules make of commands, told without running anything (SPEC 5.7).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use serde_json::Value;
use support::sandbox::{Output, Sandbox};

const RULES: &str = "
[approval]
deny = ['bash(rm *)']
ask = ['bash(git push*)']
allow = ['bash(ls*)', 'bash(cargo test*)', 'bash(git *)']
";

fn sandbox() -> Sandbox {
    Sandbox::new().config(RULES)
}

fn run(sandbox: &Sandbox, arguments: &[&str]) -> Output {
    sandbox.run(arguments)
}

/// SPEC 5.7: the verdict, the rule and the parts are told, and nothing runs.
#[test]
fn explain() {
    let sandbox = sandbox();
    let explained = |line: &str| {
        let output = run(&sandbox, &["policy", "explain", line]);
        assert_eq!((output.code, output.stderr.as_str()), (Some(0), ""), "{line}");
        output.stdout
    };
    insta::assert_snapshot!(explained("cd x && r''m -rf y"), @r"
    deny: deny rule bash(rm *)
      cd x
      rm -rf y
    ");
    insta::assert_snapshot!(explained("timeout 5 cargo test 2>&1 | ls"), @r"
    allow: allow rule bash(cargo test*), bash(ls*)
      timeout 5 cargo test  (does nothing but run another)
      cargo test  (run by timeout)
      ls
      >& 1
    ");
    insta::assert_snapshot!(explained("x=ls; $x > y; ls 'a"), @r"
    ask: what it runs cannot be told: the command line is not written as bash's grammar wants it
      $x  (runs what cannot be told)
      ls
      > y
      sets x
      in doubt: the command line is not written as bash's grammar wants it
    ");
    insta::assert_snapshot!(explained("ls > y"), @r"
    ask: mode ask: `> y`
      ls
      > y
    ");
    explained("touch came-to-be; ls $(touch came-to-be)");
    assert!(!sandbox.project().join("came-to-be").exists());
    assert!(!explained("ls \u{1b}[2K").contains('\u{1b}'));
}

/// SPEC 5.7: the same for programs.
#[test]
fn explain_as_json() {
    let output = run(&sandbox(), &["policy", "explain", "--json", "ls $(git push origin)"]);
    let told: Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!(told["verdict"], "ask");
    assert_eq!(told["rule"], "ask rule bash(git push*)");
    assert_eq!(told["parts"][1]["command"], "git push origin");
    assert_eq!(told["doubt"], Value::Null);
}

/// SPEC 5.7: a table of expectations holds, or it is said what does not; the exit code tells a script.
#[test]
fn test_a_table() {
    let sandbox = sandbox();
    let table = |text: &str| {
        std::fs::write(sandbox.project().join("table"), text).unwrap();
        run(&sandbox, &["policy", "test", "table"])
    };
    let holds = table("# rules\n\ndeny  cd x && rm -rf y\nallow cargo test --all\r\nask\tmake\n");
    assert_eq!((holds.code, holds.stdout.as_str()), (Some(0), "3 expectations hold\n"));
    let fails = table("allow ls\nallow ls; make\ndeny ls\n");
    assert_eq!(fails.code, Some(1));
    insta::assert_snapshot!(fails.stdout, @r"
    table:2: expected allow, got ask (mode ask: no rule allows `make`): ls; make
    table:3: expected deny, got allow (allow rule bash(ls*)): ls
    2 of 3 expectations do not hold
    ");
    for (text, says) in [("maybe ls\n", "table:1"), ("allow\n", "table:1")] {
        let output = table(text);
        assert_eq!(output.code, Some(2), "{text:?}");
        assert!(output.stderr.contains(says), "{output:?}");
    }
    assert_eq!(run(&sandbox, &["policy", "test", "nowhere"]).code, Some(2));
}
