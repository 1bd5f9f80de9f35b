//! The order of rules, the modes and what patterns cover.
#![allow(clippy::unwrap_used)]

use super::*;
use serde_json::json;

mod pages;

fn on(tool: &str, effect: Effect) -> Action {
    Action {
        tool: tool.into(),
        arguments: json!({}),
        effects: vec![effect],
    }
}
fn command(line: &str) -> Action {
    on(
        "bash",
        Effect::Execute {
            command: line.into(),
            directory: "/w".into(),
            parts: crate::parts::Parts::default(),
        },
    )
}
fn read(path: &str) -> Action {
    on("file_read", Effect::Read { path: path.into() })
}
fn write(path: &str) -> Action {
    on("file_write", Effect::Write { path: path.into() })
}
fn rules(texts: &[&str]) -> Vec<Rule> {
    texts.iter().map(|text| Rule::parse(text).unwrap()).collect()
}
fn check(policy: &Policy, mode: ApprovalMode, action: &Action, expect: Verdict) {
    let got = policy.judge(action, CallSource::Builtin, mode, SoFar::default());
    assert_eq!(got.verdict, expect, "{action:?} in {mode:?}: {}", got.rule);
    assert!(!got.rule.is_empty());
}

/// SPEC 5.2: the three modes over reads, writes and commands.
#[test]
fn modes() {
    use ApprovalMode::{Ask, Auto, Full};
    use Verdict::{Allow, Ask as Asks};
    let policy = Policy::new("/w");
    let remote = on("git.push", Effect::Remote);
    let table: &[(&Action, [Verdict; 3])] = &[
        (&read("/w/src/a.rs"), [Allow, Allow, Allow]),
        (&read("/etc/hosts"), [Asks, Allow, Allow]),
        (&read("/w/.env"), [Asks, Asks, Allow]),
        (&read("/w/deploy/server.pem"), [Asks, Asks, Allow]),
        (&write("/w/a"), [Asks, Allow, Allow]),
        (&write("/w/.git/hooks/post-commit"), [Asks, Asks, Allow]),
        (&write("/etc/a"), [Asks, Asks, Allow]),
        (&command("ls"), [Asks, Asks, Allow]),
        (&remote, [Asks, Asks, Allow]),
    ];
    for (action, expect) in table {
        for (mode, verdict) in [Ask, Auto, Full].into_iter().zip(expect) {
            check(&policy, mode, action, *verdict);
        }
    }
}

/// SPEC 5.1: deny, ask, allow, mode, in that order; a deny holds in every mode.
#[test]
fn order_of_rules() {
    let mut policy = Policy::new("/w");
    policy.deny = rules(&["bash(git push --force*)", "file_write(secret/*)"]);
    policy.ask = rules(&["bash(git push*)"]);
    policy.allow = rules(&[
        "bash(git push)",
        "bash(cargo test)",
        "bash(cargo*)",
        "file_write(src/*)",
    ]);
    for mode in [ApprovalMode::Ask, ApprovalMode::Auto, ApprovalMode::Full] {
        check(&policy, mode, &command("git push --force origin"), Verdict::Deny);
        check(&policy, mode, &command("cd x && git push --force"), Verdict::Deny);
        check(&policy, mode, &command("sh -c 'git push --force'"), Verdict::Deny);
        check(&policy, mode, &write("/w/secret/a"), Verdict::Deny);
    }
    check(&policy, ApprovalMode::Ask, &command("git push"), Verdict::Ask);
    check(&policy, ApprovalMode::Full, &command("git push"), Verdict::Allow);
    check(&policy, ApprovalMode::Ask, &command("cargo test"), Verdict::Allow);
    check(
        &policy,
        ApprovalMode::Ask,
        &command("cargo test; rm -rf /"),
        Verdict::Ask,
    );
    check(&policy, ApprovalMode::Ask, &write("/w/src/deep/a.rs"), Verdict::Allow);
    check(&policy, ApprovalMode::Ask, &write("/w/other"), Verdict::Ask);
}

fn delegate(hint: Hint, changed: Option<&str>) -> Action {
    let effect = Effect::Delegate {
        definition: crate::Digest::of("sends"),
        hint,
        changed: changed.map(str::to_owned),
    };
    on("mail.send", effect)
}

/// SPEC 5.8: what a trusted server says of its tools counts in mode `auto`, and nowhere else.
#[test]
fn hints() {
    use ApprovalMode::{Ask, Auto, Full};
    let policy = Policy::new("/w");
    for (hint, in_auto) in [
        (Hint::Unknown, Verdict::Ask),
        (Hint::ReadOnly, Verdict::Allow),
        (Hint::Additive, Verdict::Allow),
    ] {
        let call = delegate(hint, None);
        for (mode, expect) in [(Ask, Verdict::Ask), (Auto, in_auto), (Full, Verdict::Allow)] {
            let judged = policy.judge(&call, CallSource::Mcp, mode, SoFar::default());
            assert_eq!(judged.verdict, expect, "{hint:?} in {mode:?}");
        }
    }
}

/// SPEC 9.2, 9.6: what the client executes is its own affair, unless a rule of this side speaks of it.
#[test]
fn tools_of_the_client() {
    use ApprovalMode::{Ask, Auto, Full};
    let call = on("pick_photo", Effect::Remote);
    let check = |policy: Policy, expect: [Verdict; 3]| {
        let judged = |mode| policy.judge(&call, CallSource::Client, mode, SoFar::default()).verdict;
        assert_eq!([Ask, Auto, Full].map(judged), expect, "{policy:?}");
    };
    check(Policy::new("/w"), [Verdict::Allow; 3]);
    let asking = Policy {
        ask: rules(&["pick_photo"]),
        ..Policy::new("/w")
    };
    check(asking, [Verdict::Ask, Verdict::Ask, Verdict::Allow]);
    let denying = Policy {
        deny: rules(&["pick_*"]),
        ..Policy::new("/w")
    };
    check(denying, [Verdict::Deny; 3]);
}

/// SPEC 12: what the user allows is of the user's own servers: a project's server has none of it, by no pattern; what is denied
/// or asked about holds for it too.
#[test]
fn servers_of_a_project() {
    let allowing = Policy {
        allow: rules(&["mail.send", "*"]),
        auto_approve: vec![("mail.send".into(), true), ("*.*".into(), true)],
        ..Policy::new("/w")
    };
    let call = delegate(Hint::Unknown, None);
    check(&allowing, ApprovalMode::Ask, &call, Verdict::Allow);
    let guests = |guest: &str| Policy {
        guests: vec![guest.to_owned()],
        ..allowing.clone()
    };
    check(&guests("mail"), ApprovalMode::Ask, &call, Verdict::Ask);
    check(&guests("mai"), ApprovalMode::Ask, &call, Verdict::Allow);
    let denying = Policy {
        deny: rules(&["*.send"]),
        ..guests("mail")
    };
    check(&denying, ApprovalMode::Full, &call, Verdict::Deny);
}

/// SPEC 6.8: a changed definition asks whatever allows the tool; a deny stays one, and `full` asks nothing.
#[test]
fn changed_definitions() {
    let mut policy = Policy {
        allow: rules(&["mail.send"]),
        auto_approve: vec![("mail.*".into(), true)],
        ..Policy::new("/w")
    };
    let grants = [Grant {
        tool: "mail.send".into(),
        command: None,
    }];
    let judge = |policy: &Policy, changed, mode| {
        policy
            .judge(
                &delegate(Hint::ReadOnly, changed),
                CallSource::Mcp,
                mode,
                SoFar::granted(&grants),
            )
            .verdict
    };
    let changed = Some("description: another");
    assert_eq!(judge(&policy, None, ApprovalMode::Ask), Verdict::Allow);
    assert_eq!(judge(&policy, changed, ApprovalMode::Ask), Verdict::Ask);
    assert_eq!(judge(&policy, changed, ApprovalMode::Auto), Verdict::Ask);
    assert_eq!(judge(&policy, changed, ApprovalMode::Full), Verdict::Allow);
    policy.deny = rules(&["mail.send"]);
    for mode in [ApprovalMode::Ask, ApprovalMode::Auto, ApprovalMode::Full] {
        assert_eq!(judge(&policy, changed, mode), Verdict::Deny);
    }
}

/// SPEC 5.4: auto_approve, exact before star.
#[test]
fn auto_approve() {
    let mut policy = Policy::new("/w");
    policy.auto_approve = vec![
        ("git.*".into(), true),
        ("git.push".into(), false),
        ("desk.read".into(), true),
        ("bash".into(), true),
    ];
    let judge = |tool: &str| {
        policy
            .judge(
                &on(tool, Effect::Remote),
                CallSource::Mcp,
                ApprovalMode::Ask,
                SoFar::default(),
            )
            .verdict
    };
    assert_eq!(judge("git.log"), Verdict::Allow);
    assert_eq!(judge("git.push"), Verdict::Ask);
    assert_eq!(judge("desk.read"), Verdict::Allow);
    assert_eq!(judge("desk.write"), Verdict::Ask);
    check(&policy, ApprovalMode::Ask, &command("ls"), Verdict::Allow);
}

/// SPEC 5.3: `a` covers this tool, for commands this exact command.
#[test]
fn grants() {
    let policy = Policy {
        ask: rules(&["bash(make*)", "file_write(x*)"]),
        ..Policy::new("/w")
    };
    let grants = [
        Grant {
            tool: "bash".into(),
            command: Some("make install".into()),
        },
        Grant {
            tool: "file_write".into(),
            command: None,
        },
    ];
    let judge = |action: &Action| {
        policy
            .judge(action, CallSource::Builtin, ApprovalMode::Ask, SoFar::granted(&grants))
            .verdict
    };
    assert_eq!(judge(&command("make install")), Verdict::Allow);
    assert_eq!(judge(&command("make install -n")), Verdict::Ask);
    assert_eq!(judge(&write("/w/a")), Verdict::Allow);
    assert_eq!(judge(&write("/w/x1")), Verdict::Ask);
    assert_eq!(
        judge(&on("file_edit", Effect::Write { path: "/w/a".into() })),
        Verdict::Ask
    );
}

/// SPEC 5.2: the default rule is visible and can be removed.
#[test]
fn default_rule_can_be_removed() {
    let policy = Policy {
        read_only_inside_tree: false,
        ..Policy::new("/w")
    };
    check(&policy, ApprovalMode::Ask, &read("/w/a"), Verdict::Ask);
}

#[test]
fn rules_parse() {
    for good in ["bash", "git.*", "*", "bash(rm -rf (x))", "file_write(src/*)"] {
        assert_eq!(Rule::parse(good).unwrap().to_string(), good);
    }
    for bad in ["", "(x)", "bash(x", "two words"] {
        assert!(Rule::parse(bad).is_err(), "{bad}");
    }
}

#[test]
fn wildcards() {
    for (pattern, text, fits) in [
        ("*", "", true),
        ("a*c", "abbc", true),
        ("a*c", "abbcd", false),
        ("*a*b", "xaxxab", true),
        ("", "x", false),
        ("é*", "éa", true),
    ] {
        assert_eq!(wildcard(pattern, text), fits, "{pattern} {text}");
    }
    assert!(!wildcard(&"*a".repeat(50), &"a".repeat(40)));
}

#[test]
fn secret_names() {
    for secret in [
        "/h/.ssh/config",
        ".env",
        ".env.local",
        "a/id_ed25519",
        "x/Server.KEY",
        "/etc/shadow",
    ] {
        assert!(is_secret_path(Path::new(secret)), "{secret}");
    }
    for plain in [
        "src/main.rs",
        ".env.example",
        "id_rsa.pub",
        "keyboard.rs",
        "environment",
    ] {
        assert!(!is_secret_path(Path::new(plain)), "{plain}");
    }
}

/// SPEC 5.1: a deny or ask rule on a path holds by whatever name the file is called.
#[test]
fn paths_by_any_name() {
    let named = |path: &str, named: &str| Action {
        arguments: json!({ "path": named }),
        ..read(path)
    };
    for rule in [
        "file_read(~/w/n.txt)",
        "file_read(../w/n.txt)",
        "file_read(./n.txt)",
        "file_read(n*)",
        "file_read(/h/w/n.txt)",
        "*(link.txt)",
    ] {
        let policy = Policy {
            deny: rules(&[rule]),
            home: Some("/h".into()),
            ..Policy::new("/h/w")
        };
        check(
            &policy,
            ApprovalMode::Full,
            &named("/h/w/n.txt", "link.txt"),
            Verdict::Deny,
        );
        check(
            &policy,
            ApprovalMode::Full,
            &named("/h/w/other", "other"),
            Verdict::Allow,
        );
        let by_name = named("/h/w/n.txt", "sub/../n.txt");
        let expect = if rule == "*(link.txt)" {
            Verdict::Allow
        } else {
            Verdict::Deny
        };
        check(&policy, ApprovalMode::Full, &by_name, expect);
    }
}

/// SPEC 5.1: what a rule denies or asks about by name is passed over by the tools that search the folder above it.
#[test]
fn searches_pass_over() {
    let policy = Policy {
        deny: rules(&["file_read(private/*)"]),
        ask: rules(&["glob(*.log)"]),
        own: vec!["/h/.config/aish".into()],
        home: Some("/h".into()),
        ..Policy::new("/h")
    };
    let hides = |tool: &str, path: &str| policy.hides(tool, Path::new(path));
    assert!(hides("grep", "/h/private/x"));
    assert!(!hides("glob", "/h/private/x"));
    assert!(hides("glob", "/h/a.log"));
    assert!(hides("grep", "/h/.config/aish/config.toml"));
    assert!(!hides("grep", "/h/src/x"));
}

/// SPEC 5.2, 12: aish's own files, start-up files and what is private in a home are never touched unasked, wherever the
/// tree begins.
#[test]
fn sensitive_places() {
    use Verdict::{Allow, Ask as Asks};
    let policy = |root: &str| Policy {
        home: Some("/h".into()),
        own: vec!["/h/.local/share/aish".into(), "/h/conf/aish.toml".into()],
        allow: rules(&["file_write(conf/*)"]),
        ..Policy::new(root)
    };
    let table: &[(&str, &Action, Verdict, Verdict)] = &[
        ("/h", &read("/h/notes"), Allow, Allow),
        ("/h", &read("/h/.config/x"), Asks, Asks),
        ("/h", &write("/h/conf/aish.toml"), Asks, Asks),
        ("/h", &write("/h/conf/other"), Allow, Allow),
        ("/h", &write("/h/.bashrc"), Asks, Asks),
        ("/h", &write("/h/w/.bashrc"), Asks, Asks),
        ("/h/w/.git/hooks", &write("/h/w/.git/hooks/pre-commit"), Asks, Asks),
        ("/h/.config/nvim", &read("/h/.config/nvim/init.lua"), Allow, Allow),
        ("/", &read("/etc/hosts"), Asks, Allow),
        ("/", &write("/etc/hosts"), Asks, Asks),
    ];
    for (root, action, ask, auto) in table {
        check(&policy(root), ApprovalMode::Ask, action, *ask);
        check(&policy(root), ApprovalMode::Auto, action, *auto);
        check(&policy(root), ApprovalMode::Full, action, Allow);
    }
}

/// SPEC 5.3: a saved rule never allows more than was asked about; what touches only the session's own jobs is not asked about.
#[test]
fn jobs() {
    let job = on("bash", Effect::Internal);
    assert_eq!(Rule::allowing(&job), None);
    assert_eq!(Rule::allowing(&command("ls -l")).unwrap().to_string(), "bash(ls -l)");
    let policy = Policy {
        read_only_inside_tree: false,
        allow: rules(&["bash"]),
        ..Policy::new("/w")
    };
    check(&policy, ApprovalMode::Ask, &job, Verdict::Allow);
    check(&policy, ApprovalMode::Ask, &command("ls"), Verdict::Ask);
    assert!(rules(&["bash"])[0].allows_less_than_it_says().is_some());
    assert!(rules(&["bash(ls)"])[0].allows_less_than_it_says().is_none());
}

/// SPEC 5.1, 11: a pattern on commands fits from any word, up to the end of that command, in linear time.
#[test]
fn commands_by_pattern() {
    let denied = |pattern: &str, line: &str| {
        let policy = Policy {
            deny: rules(&[&format!("bash({pattern})")]),
            ..Policy::new("/w")
        };
        policy.denial(&command(line)).is_some()
    };
    for (pattern, line, fits) in [
        ("git push", "git push", true),
        ("git push", "cd x && git push; ls", true),
        ("git push", "git push origin", false),
        ("git*push", "git -C x push | cat", true),
        ("git*push", "git pushup", false),
        ("rm -rf *", "sudo rm -rf /", true),
        ("rm -rf *", "farm -rf x", false),
        ("*--force*", "git push --force", true),
        ("*", "", true),
    ] {
        assert_eq!(denied(pattern, line), fits, "{pattern} on {line}");
    }
    // A megabyte of starts that all lead nowhere: quadratic would take hours.
    let line = "git ".repeat(1 << 18);
    assert!(!denied("git*rm -rf /*", &line));
    assert!(!denied("*rm -rf /*", &line));
}
