//! The simple commands of a line, however they are hidden.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use aish_command::{NotUnderstood, simple_commands};
use aish_core::parts::{Inner, SimpleCommand};

/// The commands of `text` as `by>name argument`, in the order of the text; `?` for what cannot be told, `!` where one runs what
/// nobody sees.
fn commands(text: &str) -> Vec<String> {
    let parts = simple_commands(text);
    assert_eq!(parts.doubt, None, "{text:?}");
    let told = parts.commands.iter().map(|command| {
        let words = command.words.iter().map(|word| word.value.as_deref().unwrap_or("?"));
        let by: String = command.by.iter().map(|name| format!("{name}>")).collect();
        let hides = if command.inner == Inner::Hidden { "!" } else { "" };
        format!("{hides}{by}{}", words.collect::<Vec<_>>().join(" "))
    });
    told.collect()
}

fn assert_doubt(text: &str, why: &NotUnderstood) {
    assert_eq!(simple_commands(text).doubt, Some(why.to_string()), "{text:?}");
}

fn check(text: &str, expect: &[&str]) {
    assert_eq!(commands(text), expect, "{text:?}");
}

/// SPEC 5.7: every command of pipelines, lists, blocks and substitutions is seen.
#[test]
fn wherever_they_stand() {
    check("ls -l | wc", &["ls -l", "wc"]);
    check("a && b || c; d & e", &["a", "b", "c", "d", "e"]);
    check("(a; { b; })", &["a", "b"]);
    check("echo $(rm -rf /)", &["echo ?", "rm -rf /"]);
    check("echo \"x $(rm `id`)\"", &["echo ?", "rm ?", "id"]);
    check("diff <(a) >(b)", &["diff ? ?", "a", "b"]);
    check("if a; then b; elif c; then d; else e; fi", &["a", "b", "c", "d", "e"]);
    check("for x in $(a); do b; done; while c; do d; done", &["a", "b", "c", "d"]);
    check("case $(a) in x) b;; esac", &["a", "b"]);
    check("f() { rm x; }; f", &["rm x", "f"]);
    check("! a; time b", &["a", "time b", "time>b"]);
    check("x=$(rm y) z", &["z", "rm y"]);
    check("echo ${x:-$(rm y)} $((1 + 2))", &["echo ? ?", "rm y"]);
    check("cat <<E\n$(rm x)\nE", &["cat", "rm x"]);
    check("cat <<'E'\n$(rm x)\nE", &["cat"]);
    check("cat <<< \"$(rm x)\"", &["cat", "rm x"]);
    check("a > $(rm x)", &["a", "rm x"]);
    check("[ -f x ] && [[ $(rm x) ]]", &["[", "[[", "rm x"]);
    check("export A=$(rm x); unset B", &["export ?", "rm x", "unset B"]);
    check("arr=($(rm x))", &["rm x"]);
}

/// SPEC 5.7: a name is what it says, however it is quoted; one that only running would tell is not guessed.
#[test]
fn quoted_names() {
    for name in [
        "rm",
        r"r\m",
        "'r'm",
        "\"rm\"",
        "r\"m\"",
        r"$'\x72m'",
        r"$'\162m'",
        "''rm",
        r"\rm",
        "$\"rm\"",
    ] {
        check(&format!("{name} x"), &["rm x"]);
    }
    check("$x y", &["!? y"]);
    check("r$x y", &["!? y"]);
    check("$(echo rm) y", &["!? y", "echo rm"]);
    check("/bin/r? y", &["!/bin/r? y"]);
}

/// SPEC 5.7: what programs are told to run is seen, or is said to be hidden.
#[test]
fn wrapped_commands() {
    check("sudo -u root rm x", &["sudo -u root rm x", "sudo>rm x"]);
    check("env -i A=b rm x", &["env -i A=b rm x", "env>rm x"]);
    check(
        "nice -n5 nohup timeout -s KILL 5 rm x",
        &[
            "nice -n5 nohup timeout -s KILL 5 rm x",
            "nice>nohup timeout -s KILL 5 rm x",
            "nice>nohup>timeout -s KILL 5 rm x",
            "nice>nohup>timeout>rm x",
        ],
    );
    check(
        "find . -name x -exec rm {} ';'",
        &["find . -name x -exec rm {} ;", "find>rm ?"],
    );
    check(
        "find . -exec sh -c 'rm \"$1\"' _ {} +",
        &[
            "find . -exec sh -c rm \"$1\" _ {} +",
            "find>sh -c rm \"$1\" _ ?",
            "find>sh>rm ?",
        ],
    );
    check(
        "ls | xargs -0 -n 1 rm -f",
        &["ls", "xargs -0 -n 1 rm -f", "xargs>rm -f ?"],
    );
    check("sh -c 'a; b $(c)'", &["sh -c a; b $(c)", "sh>a", "sh>b ?", "sh>c"]);
    check("/bin/bash -lc rm", &["/bin/bash -lc rm", "/bin/bash>rm"]);
    check(
        "bash -o pipefail -c \"sh -c 'rm x'\"",
        &["bash -o pipefail -c sh -c 'rm x'", "bash>sh -c rm x", "bash>sh>rm x"],
    );
    check("eval rm 'x y'", &["eval rm x y", "eval>rm x y"]);
    check(
        "command rm x; builtin cd y",
        &["command rm x", "command>rm x", "builtin cd y", "builtin>cd y"],
    );
}

/// SPEC 5.7: what cannot be understood is said, never passed over.
#[test]
fn what_is_hidden() {
    for text in [
        "sh -c \"$x\"",
        "eval $x",
        "curl x | sh",
        "bash <<E\nrm x\nE",
        "bash script",
        "sudo -i",
        "sudo --new-option rm x",
        "env -S 'rm x'",
        "xargs -J % rm",
        "env $x rm",
        "find . $x",
        "find . -exec a ';' -exec b ';'",
        "source x",
        ". ./x",
        "ssh host rm x",
        "trap 'rm x' EXIT",
        "alias ls='rm x'",
        "zsh -c 'rm x'",
        "git -c core.pager='rm x' log",
        "git --exec-path=/tmp/x status",
        "git rebase -x 'rm x' main",
        "git clone ext::sh",
        "git config alias.x '!rm x'",
        "awk 'BEGIN { system(\"rm x\") }'",
        "find . -fprint x",
        "find . -delete -exec a ';'",
        "printf -v 'a[$(rm x)]' y",
        "mapfile -C 'rm x' y",
        "xargs --replace=% rm",
    ] {
        let parts = simple_commands(text);
        assert!(
            parts.commands.iter().any(|command| command.inner == Inner::Hidden),
            "{text:?}: {parts:?}"
        );
    }
    for text in ["ls | | wc", "echo 'a", "if a; then", ")", "sh -c 'if'", "{rm,-rf,/}"] {
        assert_doubt(text, &NotUnderstood::Malformed);
    }
    for wrapper in ["sudo ", "eval "] {
        let deep = format!("{}rm x", wrapper.repeat(10));
        assert_doubt(&deep, &NotUnderstood::TooDeep);
    }
    assert_doubt(&"a;".repeat(5_000), &NotUnderstood::TooMany);
    let growing = format!("alias y='{}'; {}", "x ".repeat(1_000), "y;".repeat(1_000));
    assert_doubt(&growing, &NotUnderstood::TooLong);
}

/// SPEC 5.7: where things go to, and what is set, is seen as well.
#[test]
fn redirects_and_variables() {
    let parts = simple_commands("A=1 ls > out 2>> 'e rr' < in; B=\"x y\"; f() { ls; } >log");
    let redirects: Vec<(&str, Option<&str>)> = parts
        .redirects
        .iter()
        .map(|redirect| (redirect.operator.as_str(), redirect.target.value.as_deref()))
        .collect();
    assert_eq!(
        redirects,
        [
            (">", Some("out")),
            (">>", Some("e rr")),
            ("<", Some("in")),
            (">", Some("log"))
        ]
    );
    let assignments: Vec<(&str, Option<&str>)> = parts
        .assignments
        .iter()
        .map(|assignment| (assignment.name.as_str(), assignment.value.value.as_deref()))
        .collect();
    assert_eq!(assignments, [("B", Some("x y"))]);
    assert_eq!(parts.commands[0].written(), "A=1 ls");
    assert_eq!(parts.functions, ["f"]);
}

/// SPEC 5.7: what the grammar may read otherwise than a shell does is not understood; nothing runs that was taken for text.
#[test]
fn what_is_read_two_ways() {
    for text in [
        "ls\rrm x",
        "ls\u{c}rm x",
        "r\\\nm x",
        "cat <<-E\n\t$(rm x)\n\tE",
        "cat <<E\n\t`rm x`\nE",
        "cat <<E\n\t$[x]\nE",
        "[[ 'a[$(rm x)]' -eq 1 ]]",
        "echo $((a['$(rm x)']))",
        "((a['`rm x`']))",
    ] {
        assert_doubt(text, &NotUnderstood::Unclear);
    }
    for text in [
        "make \\\n  -j2 \\\n all",
        "echo 'a\rb $(c)'",
        "cat <<'E'\n\t$(c)\nE",
        "echo \"a\\\nb\" \\$\\(c\\)",
        "a && # b\nc",
    ] {
        assert_eq!(simple_commands(text).doubt, None, "{text:?}");
    }
}

/// SPEC 5.7: what a variable holds is code in some places: nobody can tell what runs.
#[test]
fn what_is_evaluated() {
    for text in [
        "echo $((x))",
        "echo $((1 + $x)) y",
        "echo \"$((x))\"",
        "echo $[x]",
        "echo $(($(cat y)))",
        "((x++))",
        "for ((i = 0; i < 3; i++)); do ls; done",
        "echo ${a[x]}",
        "echo ${a[$x]}",
        "echo ${a[\"$x\"]}",
        "echo ${v:x}",
        "echo ${v:1:$x}",
        "echo ${x@P}",
        "echo ${a[@]@P}",
        "echo ${!x}",
        "[[ $x -eq 1 ]]",
        "[[ -n y && 1 -lt x ]]",
        "[[ -v $x ]]",
        "cat <<E\n$((x))\nE",
        "bash -c 'echo $((x))'",
    ] {
        assert_doubt(text, &NotUnderstood::Evaluated);
    }
    for text in [
        "echo $((1 + 2 * 0x1f)) $(($# + $?))",
        "echo ${a[0]} ${a[@]} ${#a[*]} ${v:1:2} ${v:-x} ${x@Q} ${!x*} ${!a[@]} ${#x}",
        "[[ -n $x && $x == y && -v x ]]",
        "[ \"$x\" -eq 1 ]",
        "for x in $y; do echo $x; done",
    ] {
        assert_eq!(simple_commands(text).doubt, None, "{text:?}");
    }
}

/// SPEC 5.7: words behind a redirection belong to the command, wherever the grammar puts them.
#[test]
fn words_behind_redirections() {
    check("git > /dev/null push --force", &["git push --force"]);
    check("git <<E push\nx\nE", &["git push"]);
    check(">x git push", &["git push"]);
    check("git <<< x push", &["git push"]);
    let parts = simple_commands("git > out push");
    assert_eq!(parts.redirects.len(), 1);
}

/// SPEC 5.7: some programs do more than their name says, and some nothing but run another.
#[test]
fn what_programs_do() {
    check("find . -delete", &["find . -delete", "find>rm ?"]);
    check("git bisect run rm x", &["git bisect run rm x", "git>rm x"]);
    check(
        "ls | xargs -I % rm %/x y",
        &["ls", "xargs -I % rm %/x y", "xargs>rm ? y"],
    );
    check("git -c alias.x='!rm y' x", &["git -c alias.x=!rm y x", "git>rm y"]);
    check("command -v rm", &["command -v rm"]);
    check("alias y='rm -f'; y x", &["!alias y=rm -f", "y x", "y>rm -f x"]);
    check(
        "alias y='y z' b=y; b x",
        &["!alias y=y z b=y", "b x", "b>y x", "b>y>y z x"],
    );
    check("y x; alias y=rm", &["y x", "!alias y=rm"]);
    check("git -c color.ui=never -C x log", &["git -c color.ui=never -C x log"]);
    check("awk '{ print $1 }' x", &["awk { print $1 } x"]);
    let inner = |text: &str| {
        simple_commands(text)
            .commands
            .first()
            .map(|command: &SimpleCommand| command.inner)
    };
    assert_eq!(inner("timeout 5 rm x"), Some(Inner::Alone));
    assert_eq!(inner("bash -c 'rm x'"), Some(Inner::Alone));
    for text in [
        "A=1 timeout 5 rm x",
        "/tmp/timeout 5 rm x",
        "sudo rm x",
        "xargs rm",
        "env A=1 rm x",
    ] {
        assert_eq!(inner(text), Some(Inner::Seen), "{text:?}");
    }
    assert_eq!(inner("time -o x ls"), Some(Inner::Hidden));
}
