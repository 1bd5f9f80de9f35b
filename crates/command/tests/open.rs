//! Whether a command line is whole: a table for each shell.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use aish_command::{Grammar, Opened, open};

fn check(grammar: Grammar, text: &str, expect: Option<Opened>) {
    assert_eq!(open(text, grammar), expect, "{grammar:?} {text:?}");
}

fn bash(text: &str, expect: Option<Opened>) {
    check(Grammar::Bash, text, expect);
}

/// SPEC 8.9: several lines: an open quote goes on, in every way one can be open.
#[test]
fn quotes() {
    for text in [
        "echo 'a",
        "echo \"a",
        "echo 'a\nb",
        "echo a\"b",
        "echo $'it\\'s",
        "echo \"it's",
        "x=\"a",
        "'a",
        "echo \"a $(ls) b",
        "echo \"a\\\"",
        "cat <<'EO",
        "echo \"${x:-it's}",
    ] {
        bash(text, Some(Opened::Quote));
    }
    for text in [
        "echo 'a'",
        "echo 'a\nb'",
        "echo \"it's\"",
        "echo \\'",
        "echo \\\"",
        "echo '\\'",
        "echo $'it\\'s'",
        "echo a # it's",
        "echo \"${x:-it's}\"",
        "echo \"$(echo \"a\" 'b')\"",
        "x=(a # it's\nb)",
        "echo \"a\"'b'\"c\"",
    ] {
        bash(text, None);
    }
}

/// SPEC 8.9: substitutions and lists go on until they are closed.
#[test]
fn substitutions() {
    for text in [
        "echo $(ls",
        "echo $(",
        "echo `ls",
        "echo ${x",
        "echo $((1+",
        "echo $((1+(2)",
        "(echo a",
        "(echo a |",
        "x=(a b",
        "diff <(ls a) <(ls b",
        "ls *(a|b",
        "((x = 1",
        "echo \"$(ls | wc",
        "echo $(if true; then ls; fi",
    ] {
        bash(text, Some(Opened::Substitution));
    }
    for text in [
        "echo $(ls)",
        "echo `ls`",
        "echo ${x:-$(ls)}",
        "echo $((1+(2)))",
        "(echo a)",
        "x=(a b)",
        "diff <(ls a) <(ls b)",
        "echo $((1 << 3))",
        "((x = 1 << 2))",
        "ls *(a|b)",
        "echo `if true; then ls; fi`",
        "echo $(case x in x) ls;; esac)",
    ] {
        bash(text, None);
    }
}

/// SPEC 8.9: here-documents go on until their last line.
#[test]
fn here_documents() {
    for text in [
        "cat <<EOF",
        "cat <<EOF\na",
        "cat <<EOF\na\n\nb\n",
        "cat <<EOF\n EOF",
        "cat <<'EOF' | wc\nit's",
        "cat <<-EOF\n\ta",
        "cat <<A <<B\na\nA\nb",
        "cat <<\\EOF\n$(",
    ] {
        bash(text, Some(Opened::HereDocument));
    }
    for text in [
        "cat <<EOF\na\nEOF",
        "cat <<EOF\na\nEOF\n",
        "cat <<'EOF' | wc\nit's\nEOF",
        "cat <<-EOF\n\ta\n\tEOF",
        "cat <<A <<B\na\nA\nb\nB",
        "cat <<\"E\"\n'\nE\necho done",
        "cat <<< it",
        "cat <<<'a b'",
        "x=$(cat <<EOF\n(\nEOF\n)",
    ] {
        bash(text, None);
    }
}

/// SPEC 8.9: what an operator joins may stand on the next line.
#[test]
fn operators() {
    for text in [
        "ls |",
        "ls |& ",
        "ls &&",
        "ls ||",
        "ls | # why",
        "ls &&\n",
        "! ls |",
        "f()",
        "function f",
        "ls |\n# it's",
    ] {
        bash(text, Some(Opened::Operator));
    }
    bash("ls \\", Some(Opened::Backslash));
    bash("ls && \\", Some(Opened::Backslash));
    for text in [
        "ls &",
        "ls ;",
        "ls |\nwc",
        "ls &&\nwc",
        "ls >",
        "ls \\\\",
        "ls 2>&1",
        "ls &> x",
        "ls >| x",
        "ls \\\n-l",
    ] {
        bash(text, None);
    }
}

/// SPEC 8.9: blocks go on until the word that ends them.
#[test]
fn blocks() {
    for text in [
        "for i in 1 2; do echo $i",
        "for i in 1 2",
        "for ((i=0; i<3; i++)); do",
        "if true; then",
        "if true",
        "if true; then echo a; else",
        "while read x; do",
        "while (true); do",
        "until false",
        "case $x in",
        "case $x in a)",
        "case $x in a) echo;;",
        "case $x in (a|b) echo;; *) if true; then esac",
        "f() {",
        "f() { if x; then y; fi",
        "function f {",
        "{ echo a",
        "[[ -f x",
        "[[ -f x &&",
        "select x in a b",
        "x=1 if true; then",
        "! while true; do",
        "time for i in 1; do",
        "if [[ a == b ]]; then\nfor x in y; do z; done",
        "ls | while read x; do echo",
    ] {
        bash(text, Some(Opened::Block));
    }
    for text in [
        "for i in 1 2; do echo $i; done",
        "for ((i=0; i<3; i++)); do echo; done",
        "if true; then a; elif b; then c; else d; fi",
        "while read x; do a; done < f",
        "case $x in a) echo;; b|c) ;; esac",
        "case $x in\n(a) echo ;;\nesac",
        "case $x in a) echo; esac",
        "f() { ls; }",
        "f()\n{\nls\n}",
        "function f { ls; }",
        "function f() { ls; }",
        "[[ -f x && -d y ]]",
        "[[ a =~ (b|c) ]] && d",
        "echo if then do",
        "echo { a",
        "ls {a,b}",
        "git log --for while",
        "if x; then y; fi | wc",
    ] {
        bash(text, None);
    }
}

/// What no shell would take is not waited for: it has to say so itself.
#[test]
fn what_is_wrong_is_whole() {
    for text in [
        "fi",
        "done",
        ")",
        "}",
        "]]",
        "echo a )",
        "ls | | wc",
        "esac",
        ";;",
        "ls; }",
        "",
        "  ",
        "\n",
        "\\\n",
    ] {
        bash(text, None);
    }
}

/// Zsh writes blocks in ways of its own; none of them traps a line that is whole there.
#[test]
fn zsh() {
    for text in [
        "ls **/*.rs(.)",
        "ls *(.om[1,3])",
        "print -l ${(k)commands}",
        "print ${x:#*'a'}",
        "for f in *; { echo $f }",
        "for f in *; { echo $f; }",
        "for f (*.c) echo $f",
        "if [[ -f x ]] { ls; }",
        "repeat 3 echo x",
        "cat =(ls)",
        "() { ls; }",
    ] {
        check(Grammar::Zsh, text, None);
    }
    check(Grammar::Zsh, "for f in *; {", Some(Opened::Block));
}

/// SPEC 8.9: fish ends its blocks with `end`.
#[test]
fn fish() {
    let fish = |text: &str, expect: Option<Opened>| check(Grammar::Fish, text, expect);
    for text in [
        "begin; ls",
        "for i in 1 2",
        "if test -f x; ls",
        "if a; else if b; c",
        "function f",
        "switch $x\ncase a",
        "while true; if x; end",
        "begin",
        "and begin",
    ] {
        fish(text, Some(Opened::Block));
    }
    fish("echo 'it\\'s", Some(Opened::Quote));
    fish("echo (date", Some(Opened::Substitution));
    fish("ls |", Some(Opened::Operator));
    fish("ls \\", Some(Opened::Backslash));
    for text in [
        "begin; ls; end",
        "for i in 1 2; ls; end",
        "if test -f x; ls; end",
        "if a; else if b; c; end",
        "function f; ls; end",
        "echo 'it\\'s'",
        "echo (date)",
        "echo \"a$x\"",
        "cat << EOF",
        "echo done if end",
        "echo `",
        "ls; and wc; or x",
        "switch $x\ncase a\nls\nend",
    ] {
        fish(text, None);
    }
}
