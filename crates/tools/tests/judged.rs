//! What policy says of command lines as the tool that runs them hands them over: by their syntax, whatever they look like (SPEC 5.7).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod workbench;

use aish_core::event::CallSource;
use aish_core::policy::{ApprovalMode, Judgement, Policy, Rule, SoFar, Verdict};
use proptest::prelude::*;
use serde_json::json;
use workbench::Place;

fn rules(texts: &[&str]) -> Vec<Rule> {
    texts.iter().map(|text| Rule::parse(text).unwrap()).collect()
}

/// A person's rules: some programs are allowed, some denied, some asked about.
fn policy(place: &Place) -> Policy {
    Policy {
        deny: rules(&[
            "bash(rm *)",
            "bash(git push --force*)",
            "file_write(/etc/*)",
            "file_read(secret/*)",
        ]),
        ask: rules(&["bash(git push*)"]),
        allow: rules(&[
            "bash(ls*)",
            "bash(echo *)",
            "bash(git *)",
            "bash(cargo test*)",
            "bash(cat)",
            "bash(xargs *)",
            "bash(awk *)",
        ]),
        ..Policy::new(&place.context.directory)
    }
}

fn judge(place: &Place, policy: &Policy, mode: ApprovalMode, line: &str) -> Judgement {
    let action = place.inspect("bash", json!({ "command": line })).unwrap();
    policy.judge(&action, CallSource::Builtin, mode, SoFar::default())
}

fn check(expect: Verdict, lines: &[&str]) {
    let place = Place::new();
    let policy = policy(&place);
    for line in lines {
        let judged = judge(&place, &policy, ApprovalMode::Ask, line);
        assert_eq!(judged.verdict, expect, "{line:?}: {}", judged.rule);
    }
}

/// SPEC 5.7: a line is allowed when every simple command in it is.
#[test]
fn allowed_part_by_part() {
    check(
        Verdict::Allow,
        &[
            "ls",
            "ls -l | cat",
            "ls; echo done && cargo test --all 2>&1 | cat",
            "for x in a b; do echo \"$x\"; done",
            "if ls x; then git status; fi",
            "echo $(ls) `ls` <(ls)",
            "timeout 5 cargo test",
            "bash -c 'ls; git log'",
            "ls >/dev/null 2>&1",
            "git -c color.ui=never log",
            "git -C x --no-pager log push",
            "echo '{rm,x}' \\{rm,x}",
            "(ls; { echo x; })",
            "f() { ls; }; echo f",
            "cat <<E\ntext\nE",
            "ls *.rs",
            "cargo test \\\n  --all",
            "ls | xargs ls",
            "echo 'a; b' # ls",
        ],
    );
}

/// SPEC 5.7: what a rule denies is denied wherever it stands, and however it is spelled.
#[test]
fn denied_wherever_it_stands() {
    check(
        Verdict::Deny,
        &[
            "cd x && rm -rf y",
            "ls; rm x",
            "ls\nrm x",
            "ls & rm x",
            "echo $(rm x)",
            "ls <(rm x)",
            "FOO=bar rm x",
            "\\rm x",
            "'r'm x",
            "r\"\"m x",
            "$'\\x72m' x",
            "rm   x",
            "/bin/rm x",
            "command rm x",
            "builtin rm x",
            "exec rm x",
            "nohup rm x",
            "time rm x",
            "nice -n 5 rm x",
            "timeout 5 rm x",
            "ls | xargs rm",
            "find . -delete",
            "find . -exec rm {} +",
            "env -i A=b rm x",
            "env -S 'rm x'",
            "bash -c 'rm x'",
            "bash -c \"sh -c 'r''m x'\"",
            "eval 'r''m' x",
            "python -c 'import os; os.system(\"rm x\")'",
            "awk 'BEGIN { system(\"rm x\") }'",
            "git -c alias.x='!rm x' x",
            "git -c core.pager='rm x' log",
            "sh <<E\nrm x\nE",
            "echo rm x | sh",
            "flock /tmp/x /bin/rm x",
            "git > /dev/null push --force",
            "git 'push' \"--force\"",
            "git -C . push --force",
            "git -C \"$x\" push --force",
            "git --no-pager push --force",
            "git --git-dir=.git push --force",
            "git --git-dir .git -c x=y push --force",
            "/usr/bin/git -p push --force",
            "sudo git {-C,.} push --force",
            "{rm,x}",
            "shopt -s expand_aliases\nalias y=rm\ny x",
            "builtin alias y='ls; r'm; z() { y x; }",
            "{r,}m x",
            "rm{,} x",
            "r{m..m} x",
            "$\"rm\" x",
            "git {push,--force}",
            "echo x > /etc/passwd",
            "cat < secret/key",
            "{ ls; } && (rm x)",
            "if ls; then rm x; fi",
            "case x in *) rm x;; esac",
            "f() { rm \"$1\"; }; f x",
        ],
    );
}

/// SPEC 5.7: what cannot be understood asks, whatever the rules allow.
#[test]
fn asked_where_it_cannot_be_told() {
    check(
        Verdict::Ask,
        &[
            "x=ls; $x y",
            "$(echo ls) x",
            "l? x",
            "{ls,-l}",
            "ls 'a",
            "ls\r",
            "l\\\ns x",
            "eval \"$x\"",
            "source x",
            "ls | sh",
            "bash script",
            "git $x",
            "git p*",
            "git -C $x log",
            "ls > out",
            "ls >> ~/.bashrc",
            "ls > \"$x\"",
            "echo x > /dev/tcp/a/1",
            "PATH=/tmp ls",
            "PATH=/tmp; ls",
            "export PATH=/tmp; ls",
            "LD_PRELOAD=/tmp/x timeout 5 ls",
            "/tmp/ls",
            "./ls",
            "ls; unknown",
            "alias ls='unknown'; ls",
            "git -c core.pager='unknown' log",
            "git -c alias.x='!unknown' x",
            "git bisect run unknown",
            "awk 'BEGIN { system(\"unknown\") }'",
            "xargs unknown",
            "ls | xargs cat",
            "sudo ls",
            "\u{43b}s x",
            "cat <<-E\n\t$(unknown)\n\tE",
            "trap unknown EXIT; ls",
            "[[ 'a[$(unknown)]' -eq 1 ]]",
            "for x in 'a[$''(unknown)]'; do echo $((x)); done",
            "for x in '$(unknown)'; do echo \"${x@P}\"; done",
            "for x in 'a[$''(unknown)]'; do echo ${v[x]}; done",
            "git push",
        ],
    );
}

/// SPEC 5.2, 5.7: where a deny rule may be passed by, `auto_approve` asks; mode `full` does not, and what is denied for certain
/// stays denied there.
#[test]
fn modes() {
    let place = Place::new();
    let approving = Policy {
        auto_approve: vec![("bash".to_owned(), true)],
        ..policy(&place)
    };
    let verdict = |policy: &Policy, mode, line| judge(&place, policy, mode, line).verdict;
    assert_eq!(verdict(&approving, ApprovalMode::Ask, "unknown"), Verdict::Allow);
    assert_eq!(verdict(&approving, ApprovalMode::Ask, "$x y"), Verdict::Ask);
    assert_eq!(verdict(&approving, ApprovalMode::Ask, "git pu?h x"), Verdict::Ask);
    assert_eq!(verdict(&approving, ApprovalMode::Full, "$x y"), Verdict::Allow);
    assert_eq!(verdict(&approving, ApprovalMode::Full, "ls; 'r'm x"), Verdict::Deny);
    let without_rules = Policy {
        auto_approve: vec![("bash".to_owned(), true)],
        ..Policy::new(&place.context.directory)
    };
    assert_eq!(verdict(&without_rules, ApprovalMode::Ask, "$x y"), Verdict::Allow);
}

/// SPEC 5.3: the rule that is offered for a command allows what was seen, and nothing else.
#[test]
fn saved_rules_allow_what_was_seen() {
    let place = Place::new();
    let saved = |line: &str| {
        let action = place.inspect("bash", json!({ "command": line })).unwrap();
        let rule = Rule::allowing(&action).unwrap();
        Policy {
            allow: rules(&[&rule.to_string()]),
            ..Policy::new(&place.context.directory)
        }
    };
    let verdict = |policy: &Policy, line: &str| judge(&place, policy, ApprovalMode::Ask, line).verdict;
    for line in [
        "rm *.o",
        "cd x && make",
        "make > out",
        "echo 'a\\\\*b'",
        "$x y",
        "a\nb",
        "ls 'a",
        "A=1 make",
    ] {
        assert_eq!(verdict(&saved(line), line), Verdict::Allow, "{line:?}");
        for more in [
            format!("{line}; rm x"),
            format!("{line} x"),
            format!("A=2 {line}"),
            format!("{line} > y"),
        ] {
            assert_eq!(verdict(&saved(line), &more), Verdict::Ask, "{more:?}");
        }
    }
    assert_eq!(verdict(&saved("rm *.o"), "rm -rf / x.o"), Verdict::Ask);
    assert_eq!(verdict(&saved("cd x && make"), "make"), Verdict::Ask);
}

/// What a simple command can stand behind. `%` is the command.
const PREFIXES: [&str; 4] = ["%", "! %", "timeout 5 %", "nohup nice %"];
/// What any command can stand in.
const CONSTRUCTS: [&str; 19] = [
    "%",
    "ls; %",
    "% && ls",
    "ls | %",
    "% | cat",
    "ls; ( % )",
    "{ %; }",
    "echo \"$(%)\"",
    "ls <(%)",
    "if %; then ls; fi",
    "while %; do ls; done",
    "for x in a; do %; done",
    "f() { %; }; f",
    "ls\n%\n",
    "cat <<E\n$(%)\nE",
    "case x in x) %;; esac",
    "% >/dev/null 2>&1",
    "% & ls",
    "echo ${x:-$(%)}",
];

fn strictness(verdict: Verdict) -> u8 {
    match verdict {
        Verdict::Allow => 0,
        Verdict::Ask => 1,
        Verdict::Deny | Verdict::Invalid => 2,
    }
}

proptest! {
    /// SPEC 5.7: whatever a command is put into, the verdict on all of it is never laxer than the one on the command.
    #[test]
    fn wrapping_is_never_laxer(
        line in prop::sample::select(vec![
            "ls", "rm x", "'r'm x", "git push", "git push --force", "unknown", "unknown \"$x\"", "A=1 ls", "cargo test", "git $x",
            "/bin/rm x", "find . -delete",
        ]),
        prefix in prop::sample::select(PREFIXES.to_vec()),
        constructs in prop::collection::vec(prop::sample::select(CONSTRUCTS.to_vec()), 1..4),
    ) {
        let place = Place::new();
        let policy = policy(&place);
        let mut wrapped = prefix.replace('%', line);
        for construct in constructs {
            wrapped = construct.replace('%', &wrapped);
        }
        for mode in [ApprovalMode::Ask, ApprovalMode::Auto, ApprovalMode::Full] {
            let alone = judge(&place, &policy, mode, line);
            let inside = judge(&place, &policy, mode, &wrapped);
            prop_assert!(
                strictness(inside.verdict) >= strictness(alone.verdict),
                "{:?} {:?} alone ({}), {:?} in {:?} ({})", line, alone.verdict, alone.rule, inside.verdict, wrapped, inside.rule
            );
        }
    }

    /// SPEC 5.7: no rule of allowing makes a line allowed that holds a command which is not.
    #[test]
    fn one_unknown_part_is_enough(
        parts in prop::collection::vec(prop::sample::select(vec!["ls", "echo x", "cargo test", "git log"]), 1..5),
        place_of_unknown in 0usize..5,
        separator in prop::sample::select(vec!["; ", " && ", " || ", " | ", " & ", "\n"]),
    ) {
        let place = Place::new();
        let policy = policy(&place);
        let verdict = |line: &str| judge(&place, &policy, ApprovalMode::Ask, line).verdict;
        prop_assert_eq!(verdict(&parts.join(separator)), Verdict::Allow);
        let mut parts = parts;
        parts.insert(place_of_unknown.min(parts.len()), "unknown");
        prop_assert_eq!(verdict(&parts.join(separator)), Verdict::Ask);
    }
}
