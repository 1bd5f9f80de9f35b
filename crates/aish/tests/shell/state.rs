//! What one command leaves for the next: directory, variables, functions, aliases, options, limits. It is a shell's own state, so
//! each script is the one a person would type there.

use crate::person::Expected::{Exits, In, Mentions, Prints, Succeeds};
use crate::person::{ALL, BASH, Desk, FISH, POSIX, play};
use crate::support::ledger::only_session;
use crate::support::pty::key;

/// SPEC 8.2: `cd`, `cd -` and a bare `cd`.
#[test]
fn directories() {
    play(
        ALL,
        "",
        &[
            ("cd below/deep", Succeeds),
            ("pwd", In("below/deep")),
            ("cd -", Succeeds),
            ("pwd", In("")),
            ("cd nowhere-at-all", Mentions("nowhere-at-all")),
            ("pwd", In("")),
            ("cd below && ls deep", Prints("marker")),
            ("pwd", In("below")),
            ("cd", Succeeds),
            ("basename $PWD", Prints("user")),
        ],
    );
}

/// SPEC 8.2: a subshell's directory is its own; a stack of directories is the shell's.
#[test]
fn subshells_and_stacks() {
    play(
        POSIX,
        "",
        &[
            ("(cd below && pwd)", Mentions("/below")),
            ("pwd", In("")),
            ("pushd below", Succeeds),
            ("pwd", In("below")),
            ("popd", Succeeds),
            ("pwd", In("")),
        ],
    );
}

/// SPEC 8.2: what is exported reaches programs; what is not does not; both last.
#[test]
fn variables() {
    play(
        ALL,
        "",
        &[
            ("export COLOUR=blue", Succeeds),
            ("sh -c 'echo $COLOUR'", Prints("blue")),
            ("env | grep ^COLOUR=", Prints("COLOUR=blue")),
        ],
    );
    play(
        POSIX,
        "",
        &[
            ("shade=dark", Succeeds),
            ("echo $shade", Prints("dark")),
            ("sh -c 'echo [$shade]'", Prints("[]")),
            ("export shade; sh -c 'echo [$shade]'", Prints("[dark]")),
            ("unset shade; echo \"[$shade]\"", Prints("[]")),
        ],
    );
    play(
        FISH,
        "",
        &[
            ("!set shade dark", Succeeds),
            ("echo $shade", Prints("dark")),
            ("set -x shade darker; sh -c 'echo [$shade]'", Prints("[darker]")),
            ("set -e shade; set -q shade", Exits(1)),
        ],
    );
}

/// SPEC 8.2: aliases and functions that are typed.
#[test]
fn aliases_and_functions() {
    play(
        POSIX,
        "",
        &[
            ("alias greet='echo hello'", Succeeds),
            ("!greet you", Prints("hello you")),
            ("shout() { echo \"$1\" | tr a-z A-Z; }", Succeeds),
            ("!shout quiet", Prints("QUIET")),
            ("!greet | shout", Exits(0)),
        ],
    );
    play(
        FISH,
        "",
        &[
            ("alias greet 'echo hello'", Succeeds),
            ("!greet you", Prints("hello you")),
            ("function shout; echo $argv[1] | tr a-z A-Z; end", Succeeds),
            ("!shout quiet", Prints("QUIET")),
        ],
    );
}

/// SPEC 8.2: aliases, functions, variables and the path of the user's start-up file.
#[test]
fn start_up_files() {
    let posix = "alias greet='echo hello'\nshout() { echo \"$1!\"; }\nexport COLOUR=green\nexport PATH=$HOME/bin:$PATH\n\
                 mkdir -p ~/bin; printf '#!/bin/sh\\necho mine\\n' > ~/bin/my-tool; chmod +x ~/bin/my-tool\n";
    let fish = "alias greet 'echo hello'\nfunction shout; echo $argv[1]!; end\nset -gx COLOUR green\n\
                set -gx PATH $HOME/bin $PATH\n\
                mkdir -p ~/bin; printf '#!/bin/sh\\necho mine\\n' > ~/bin/my-tool; chmod +x ~/bin/my-tool\n";
    let lines = [
        ("!greet", Prints("hello")),
        ("!shout hey", Prints("hey!")),
        ("sh -c 'echo $COLOUR'", Prints("green")),
        ("!my-tool", Prints("mine")),
    ];
    play(POSIX, posix, &lines);
    play(FISH, fish, &lines);
}

/// SPEC 8.2: a file that is sourced acts on this shell.
#[test]
fn sourced_files() {
    play(
        POSIX,
        "",
        &[
            ("echo 'cd below; place=sourced; return 3' > file.sh", Succeeds),
            ("source ./file.sh", Exits(3)),
            ("pwd", In("below")),
            ("echo $place", Prints("sourced")),
        ],
    );
    play(
        FISH,
        "",
        &[
            ("echo 'cd below; set -g place sourced' > file.fish", Succeeds),
            ("source ./file.fish", Succeeds),
            ("pwd", In("below")),
            ("echo $place", Prints("sourced")),
        ],
    );
}

/// SPEC 8.2: statuses, and `$?` of the line before.
#[test]
fn statuses() {
    play(
        POSIX,
        "",
        &[
            ("false", Exits(1)),
            ("echo $?", Prints("1")),
            ("sh -c 'exit 42'", Exits(42)),
            ("echo $?", Prints("42")),
            ("sh -c 'kill -9 $$'", Exits(137)),
            ("no-such-command-at-all 2>/dev/null", Exits(127)),
            ("true", Succeeds),
        ],
    );
    play(
        FISH,
        "",
        &[
            ("false", Exits(1)),
            ("echo $status", Prints("1")),
            ("sh -c 'exit 42'", Exits(42)),
            ("echo $status", Prints("42")),
            ("true", Succeeds),
        ],
    );
}

/// SPEC 8.2: pipelines, redirections, substitutions and globs.
#[test]
fn pipelines() {
    play(
        ALL,
        "",
        &[
            (
                "printf 'b\\na\\nb\\n' | sort | uniq -c | wc -l | tr -d ' '",
                Prints("2"),
            ),
            ("echo out > file; echo more >> file; cat < file", Prints("out\nmore")),
            ("sh -c 'echo err >&2; echo out' 2>/dev/null", Prints("out")),
            ("echo $(echo inner | tr a-z A-Z)", Prints("INNER")),
            ("ls below/*/marker", Prints("below/deep/marker")),
            ("echo '日本 é 🦀' \"two  spaces\"", Prints("日本 é 🦀 two  spaces")),
            (
                "cat file | head -n1 && echo and; false || echo or",
                Prints("out\nand\nor"),
            ),
        ],
    );
    play(
        POSIX,
        "",
        &[
            ("diff <(echo a) <(echo a) && echo same", Prints("same")),
            ("echo {1..3}", Prints("1 2 3")),
            ("false | true; echo $?", Prints("0")),
        ],
    );
}

/// SPEC 8.2: options that are set last, and those that make a shell strict do not end it unasked.
#[test]
fn options() {
    play(
        POSIX,
        "",
        &[
            ("set -u", Succeeds),
            ("echo $unset_name_here", Mentions("unset_name_here")),
            ("echo still here", Prints("still here")),
            ("set +u; echo \"[$unset_name_here]\"", Prints("[]")),
            ("set -o noclobber; echo x > file", Succeeds),
            ("echo y > file", Exits(1)),
            ("cat file", Prints("x")),
            ("set -o pipefail; false | true", Exits(1)),
        ],
    );
}

/// SPEC 8.2: what a shell says of its own lines does not show when it traces them, and ours not at all.
#[test]
fn traced() {
    play(
        POSIX,
        "",
        &[
            ("set -x", Succeeds),
            ("!true hello", Mentions("true hello")),
            ("set +x", Mentions("set +x")),
            ("echo quiet", Prints("quiet")),
        ],
    );
    let person = Desk::with(BASH[0]).sit_down();
    person.types("set -x");
    let screen = person.types("!true hello");
    assert!(!screen.contains("__aish"), "{screen}");
    person.leaves();
}

/// SPEC 8.2: the mask and the limits of the process.
#[test]
fn masks_and_limits() {
    play(
        ALL,
        "",
        &[
            ("umask 077; touch secret; stat -c %a secret", Prints("600")),
            ("umask", Mentions("077")),
            ("ulimit -n 100", Succeeds),
            ("ulimit -n", Prints("100")),
            ("sh -c 'ulimit -n'", Prints("100")),
        ],
    );
}

/// SPEC 8.2: output sent elsewhere for good, and back.
#[test]
fn redirected_for_good() {
    play(
        POSIX,
        "",
        &[
            ("exec 3>&1 >file", Succeeds),
            ("echo to the file", Prints("")),
            ("exec >&3 3>&-", Succeeds),
            ("cat file", Prints("to the file")),
        ],
    );
}

/// SPEC 8.2, 8.7, 12: a shell that was made dumb by its user, its prompt sent elsewhere, holds up nobody: Ctrl-C gives ours back.
#[test]
fn made_dumb() {
    for inner in POSIX {
        let person = Desk::with(*inner).sit_down();
        person.types("true");
        person.enters("exec 2>/dev/null");
        person.presses_until_prompt(key::CTRL_C);
        person.enters("ls nowhere-at-all");
        person.presses_until_prompt(key::CTRL_C);
        person.leaves();
    }
}

/// SPEC 8.2: the user's own hooks and prompts run as they do there, and do not show.
#[test]
fn hooks_of_the_user() {
    let bash = "PROMPT_COMMAND='count=$((count+1)); PS1=\"[$count] $ \"'\nPS0='before\\n'\nexport PS1='x> '\n";
    play(
        BASH,
        bash,
        &[
            ("false", Exits(1)),
            ("echo $?", Prints("1")),
            ("[ \"$count\" -ge 3 ] && echo counted", Prints("counted")),
        ],
    );
    let zsh =
        "precmd() { count=$((count+1)); RPS1='right' }\npreexec() { began=yes }\nPS1='%~ > '\nsetopt prompt_subst\n";
    play(
        &[crate::person::Inner::Zsh],
        zsh,
        &[
            ("false", Exits(1)),
            ("echo $?", Prints("1")),
            ("echo $began; [ $count -ge 3 ] && echo counted", Prints("yes\ncounted")),
        ],
    );
    let fish = "function fish_prompt; echo 'mine> '; end\nfunction fish_greeting; echo welcome; end\n\
                function before --on-event fish_preexec; set -g began yes; end\n";
    play(
        FISH,
        fish,
        &[("true", Succeeds), ("echo $began", Prints("yes")), ("false", Exits(1))],
    );
}

/// SPEC 8.2: a start-up file that makes the shell as strict as it gets.
#[test]
fn strict_start_up() {
    play(
        POSIX,
        "set -u\nset -o noclobber\n",
        &[
            ("echo fine", Prints("fine")),
            ("cd below", Succeeds),
            ("pwd", In("below")),
        ],
    );
}

/// SPEC 8.2: what we type into the shell for ourselves is in no history of its own, and the user's lines are as they want it.
#[test]
fn the_shells_own_history() {
    play(
        BASH,
        "HISTCONTROL=ignoredups\n",
        &[
            ("echo one", Prints("one")),
            ("echo one", Prints("one")),
            ("echo $HISTCONTROL", Mentions("ignoredups")),
            ("history | grep -c 'echo [o]ne'", Prints("1")),
            ("history | grep -c '[_]_aish'; true", Prints("0")),
        ],
    );
}

/// SPEC 10.5: a key that only the shell's start-up files export is in no export of the session, once the session said whose it is: not
/// where it was printed with its name, and not where it was printed before.
#[test]
fn keys_of_start_up_files() {
    for inner in ALL {
        let person = Desk::with(*inner)
            .start_up("export RC_API_KEY=known-to-the-shell-1\n")
            .sit_down();
        assert!(person.runs("echo it is $RC_API_KEY").output.contains("it is"));
        person.types("env | grep RC_API");
        let id = only_session(&person.sandbox);
        for arguments in [&["sessions", "export", &id][..], &["sessions", "show", &id]] {
            let exported = person.sandbox.run(arguments).success().stdout;
            assert!(exported.contains("it is [redacted:RC_API_KEY]"), "{exported}");
            assert!(!exported.contains("known-to-the-shell"), "{exported}");
        }
        person.leaves();
    }
}
