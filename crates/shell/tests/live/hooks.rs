//! What a person does to the hooks of a shell, to its traps and to its options: no command is held up by it, and nothing of ours
//! runs what is theirs, shows or lasts.

use super::bench::{Bench, each, runtime};
use aish_shell::Ended;
use std::path::Path;

/// Plays lines in a shell with that start-up file: what each prints, exactly, with success.
fn play(name: &'static str, start_up: &str, lines: &[(&str, &str)]) {
    let bench = Bench::new(name, start_up);
    runtime().block_on(async {
        for (line, prints) in lines {
            let text = bench.text(line).await;
            assert_eq!(text.trim_end(), *prints, "{name}, {start_up:?}: {line}");
        }
        // With set -e this must be no failure.
        assert_eq!(
            bench.text("sh -c 'exit 3' || echo failed").await.trim_end(),
            "failed",
            "{name}, {start_up:?}"
        );
        let beside = bench.beside.lock().unwrap().clone();
        assert!(!beside.contains("__aish"), "{name}, {start_up:?}: {beside}");
    });
}

/// Runs a line, of which no more than the prompt that it brought may show, and others behind it.
fn goes_on(name: &'static str, start_up: &str, line: &str) {
    let bench = Bench::new(name, start_up);
    runtime().block_on(async {
        bench.text("echo first").await;
        let text = bench.text(line).await;
        assert!(
            text.lines().all(|text| text.contains('>') || text.trim().is_empty()),
            "{name}: {line}: {text}"
        );
        assert_eq!(bench.text("echo a").await, "a", "{name}: {line}");
        assert_eq!(
            bench.run("sh -c 'exit 3'").await.ended,
            Ended::Exited(3),
            "{name}: {line}"
        );
        assert_eq!(bench.text("echo b").await, "b", "{name}: {line}");
    });
}

/// SPEC 8.2, 12: hooks of ours that are put away are put back, and the line that does so ends as any other.
#[test]
fn put_away() {
    for line in [
        "unset PROMPT_COMMAND",
        "PROMPT_COMMAND=",
        "PROMPT_COMMAND='true'",
        "PROMPT_COMMAND=(true ':')",
        "PS1='mine> '",
        "PS0='before '; PS1='mine> '; unset PROMPT_COMMAND",
        "PS1='mine> '; PROMPT_COMMAND='PS1=\"again> \"'",
        ". ~/.bashrc",
    ] {
        goes_on("bash", "PS1='x> '\nPROMPT_COMMAND=(true)\n", line);
    }
    for line in [
        "precmd_functions=()",
        "preexec_functions=()",
        "precmd_functions=(); preexec_functions=(); PS1='mine> '; RPS1=right",
        "PROMPT='mine> '",
        "precmd() { PROMPT='again> ' }",
        "bindkey -d",
        ". ~/.zshrc",
    ] {
        goes_on("zsh", "PS1='x> '\nprecmd_functions=()\n", line);
    }
    for line in [
        "function fish_prompt; echo 'mine> '; end",
        "functions -e fish_prompt",
        "function fish_right_prompt; echo right; end",
        "bind --erase --all --user",
        "fish_vi_key_bindings",
        "source ~/.config/fish/config.fish",
    ] {
        goes_on("fish", "function fish_prompt; echo 'x> '; end\n", line);
    }
}

/// SPEC 8.2: what is in `PROMPT_COMMAND` runs at each prompt, in order, with the status of the line before, and only while it is there.
#[test]
fn commands_of_the_prompt() {
    let start_up = "PROMPT_COMMAND='seen=$?; order=a'\nPROMPT_COMMAND+=('order+=b')\n";
    play(
        "bash",
        start_up,
        &[
            ("sh -c 'exit 4' || echo $order", "ab"),
            ("PROMPT_COMMAND+=('order+=c')", ""),
            ("echo $order", "abc"),
            ("PROMPT_COMMAND=\"order+=x; $PROMPT_COMMAND\"; order=", ""),
            ("echo ${#order}", "3"),
            ("PROMPT_COMMAND='order=y'", ""),
            ("echo $order", "y"),
            ("unset PROMPT_COMMAND; order=z", ""),
            ("echo $order", "z"),
        ],
    );
    let bench = Bench::new("bash", start_up);
    runtime().block_on(async {
        bench.run("sh -c 'exit 4'").await;
        assert_eq!(bench.text("echo $seen").await, "4");
    });
}

/// SPEC 8.2: set-ups as the well-known ones are: a hook before each command by a trap, and one before each prompt.
#[test]
fn preexec() {
    // As a library of that kind does: it installs itself at the first prompt, and a command is one where no prompt is prepared.
    let library = r#"
began=() ; prompts=0 ; inside=
__its_precmd() { inside=yes; prompts=$((prompts + 1)); PS1="[$prompts] "; }
__its_interactive() { inside=; ready=on; }
__its_preexec() { [ -n "$COMP_LINE$READLINE_POINT" ] && return; [ "$ready" = on ] || return; ready=; began+=("$BASH_COMMAND"); }
__its_install() { PROMPT_COMMAND=("__its_precmd" "__its_interactive"); trap '__its_preexec "$_"' DEBUG; __its_precmd; __its_interactive; }
PROMPT_COMMAND="${PROMPT_COMMAND:+$PROMPT_COMMAND;}__its_install"
"#;
    play(
        "bash",
        library,
        &[
            // What is installed at a prompt knows of lines from the one after the next on, as in a terminal.
            ("began=()", ""),
            ("echo one", "one"),
            ("echo two", "two"),
            (
                "printf '%s,' \"${began[@]}\"",
                "echo one,echo two,printf '%s,' \"${began[@]}\",",
            ),
        ],
    );
    let zsh = "autoload -Uz add-zsh-hook\nits_precmd() { prompts=$((prompts+1)); PROMPT=\"[$prompts] \" }\n\
               its_preexec() { began+=($1) }\nadd-zsh-hook precmd its_precmd\nadd-zsh-hook preexec its_preexec\n";
    play(
        "zsh",
        zsh,
        &[("echo one", "one"), ("print -l $began", "echo one\nprint -l $began")],
    );
}

/// SPEC 8.2: traps of the user's neither show at our lines nor break them.
#[test]
fn traps() {
    for start_up in [
        "trap 'echo DEBUG-TRAP $BASH_COMMAND' DEBUG\n",
        "trap 'echo ERR-TRAP' ERR\n",
        "set -T; trap 'echo DEBUG-TRAP' DEBUG; trap 'echo RETURN-TRAP' RETURN\n",
        "set -E; trap 'echo ERR-TRAP' ERR\n",
        "shopt -s extdebug; trap ':' DEBUG\n",
    ] {
        let bench = Bench::new("bash", start_up);
        runtime().block_on(async {
            bench.run("true").await;
            bench.beside.lock().unwrap().clear();
            let text = bench.text("true hello").await;
            assert!(!text.contains("__aish"), "{start_up}: {text}");
            assert!(text.lines().count() <= 1, "{start_up}: {text}");
            assert_eq!(bench.run("(exit 3)").await.ended, Ended::Exited(3), "{start_up}");
            let beside = bench.beside.lock().unwrap().clone();
            assert!(!beside.contains("TRAP"), "{start_up}: {beside}");
        });
    }
    // A zsh runs those of DEBUG in its functions too: that it gets to see ours is all that may show.
    for (start_up, lines_max) in [
        ("TRAPZERR() { echo ERR-TRAP }\n", 0),
        ("trap 'echo ERR-TRAP' ZERR\n", 0),
        ("trap 'echo DEBUG-TRAP' DEBUG\n", 3),
        ("TRAPDEBUG() { echo DEBUG-TRAP }\n", 3),
    ] {
        let bench = Bench::new("zsh", start_up);
        runtime().block_on(async {
            bench.run("true").await;
            bench.beside.lock().unwrap().clear();
            let text = bench.text("true hello").await;
            assert!(text.lines().count() <= lines_max, "{start_up}: {text}");
            assert_eq!(bench.run("(exit 3)").await.ended, Ended::Exited(3), "{start_up}");
            let beside = bench.beside.lock().unwrap().clone();
            assert!(!beside.contains("ERR-TRAP"), "{start_up}: {beside}");
        });
    }
}

/// SPEC 8.2, 12: options that change how a shell reads, shows or minds its lines change nothing of ours.
#[test]
fn options() {
    for options in [
        "set -u",
        "set -e",
        "set -eu -o pipefail",
        "set -o noclobber",
        "set -o posix",
        "set -a",
        "set -f",
        "IFS=0123456789abcdef",
        "IFS=",
        "shopt -s extdebug",
        "shopt -s nullglob failglob",
        "shopt -u promptvars",
        "set +o history",
        "set +H",
        "shopt -s lastpipe",
        "BASH_ENV=/nowhere; LC_ALL=C",
        "printf() { echo mine; }; read() { echo mine; }; trap() { echo mine; }",
        "alias printf='echo mine' local=false case=false",
    ] {
        let lines = [("echo a", "a"), ("true; echo \"$?\"", "0")];
        play("bash", &format!("{options}\n"), &lines);
        play("bash", "", &[&[(options, "")], &lines[..]].concat());
    }
    for options in [
        "emulate sh",
        "emulate ksh",
        "emulate csh",
        "setopt ksh_arrays",
        "setopt sh_word_split glob_subst",
        "setopt no_unset",
        "setopt err_exit",
        "setopt err_return",
        "setopt no_clobber",
        "setopt all_export",
        "setopt prompt_subst prompt_bang",
        "setopt no_prompt_percent",
        "setopt posix_builtins posix_traps",
        "setopt ignore_braces",
        "setopt warn_create_global warn_nested_var",
        "IFS=0123456789abcdef",
        "print() { echo mine }; read() { echo mine }",
    ] {
        let lines = [("echo a", "a"), ("true; echo \"$?\"", "0")];
        play("zsh", &format!("{options}\n"), &lines);
        play("zsh", "", &[&[(options, "")], &lines[..]].concat());
    }
}

/// SPEC 8.2: what a shell shows of the lines it reads and runs (`set -v`, `set -x`) is the user's lines.
#[test]
fn shown_lines() {
    for (name, option) in [
        ("bash", "set -x"),
        ("bash", "set -v"),
        ("bash", "set -vx"),
        ("zsh", "set -x"),
        ("zsh", "set -v"),
        ("fish", "set -g fish_trace 1"),
    ] {
        for start_up in [format!("{option}\n"), String::new()] {
            let bench = Bench::new(name, &start_up);
            runtime().block_on(async {
                if start_up.is_empty() {
                    bench.run(option).await;
                }
                for _ in 0..2 {
                    let text = bench.text("true hello").await;
                    assert!(!text.contains("__aish"), "{name} {option}: {text}");
                    assert_eq!(
                        bench.run("sh -c 'exit 3'").await.ended,
                        Ended::Exited(3),
                        "{name} {option}"
                    );
                }
                let beside = bench.beside.lock().unwrap().clone();
                assert!(!beside.contains("__aish"), "{name} {option}: {beside}");
            });
        }
    }
}

/// SPEC 8.2: `set -e` ends a shell at a line that fails, as it does in a terminal, and at none that succeeds.
#[test]
fn errexit() {
    for name in ["bash", "zsh"] {
        let bench = Bench::new(name, "");
        runtime().block_on(async {
            bench.run("false").await;
            bench.run("set -e").await;
            assert_eq!(bench.text("echo here").await, "here", "{name}");
            assert_eq!(
                bench.shell.ask("false", super::bench::PATIENCE).await,
                Some(Vec::new()),
                "{name}"
            );
            assert_eq!(bench.text("false || echo still here").await, "still here", "{name}");
            assert!(matches!(bench.run("false").await.ended, Ended::ShellEnded(_)), "{name}");
        });
    }
}

/// SPEC 8.2: names of directories are any bytes.
#[test]
fn directories() {
    each("", async |bench| {
        let home = bench.home().to_owned();
        for odd in [
            "a\x07b",
            "a\x1b]0;x\x07b",
            "a\nb",
            " a ",
            "a (deleted)",
            "-n",
            "a'b\"c",
            "a%sb\\nc",
        ] {
            let path = home.join(odd);
            std::fs::create_dir(&path).unwrap();
            // By a name that can be typed.
            std::fs::remove_file(home.join("way")).ok();
            std::os::unix::fs::symlink(&path, home.join("way")).unwrap();
            let cd = if bench.name == "fish" {
                "cd (realpath ~/way | string collect)"
            } else {
                "cd \"$(realpath ~/way)\""
            };
            assert_eq!(bench.run(cd).await.ended, Ended::Exited(0), "{}: {odd:?}", bench.name);
            assert_eq!(bench.shell.directory(), path, "{}", bench.name);
        }
        use std::os::unix::ffi::OsStrExt as _;
        let path = home.join(std::ffi::OsStr::from_bytes(b"not\xffutf8"));
        std::fs::create_dir(&path).unwrap();
        assert_eq!(bench.text("cd ~/not*").await, "", "{}", bench.name);
        assert_eq!(bench.shell.directory(), path, "{}", bench.name);
        bench.run("cd ~; mkdir gone; cd gone; rmdir ../gone").await;
        assert_eq!(bench.shell.directory(), home.join("gone"), "{}", bench.name);
        assert_eq!(bench.text("cd /").await, "", "{}", bench.name);
        assert_eq!(bench.shell.directory(), Path::new("/"), "{}", bench.name);
    });
}

/// SPEC 8.8, 10.5: whatever a shell shows of itself, nothing of it can be used to end a command or to hand in a line.
#[test]
fn what_a_shell_shows_proves_nothing() {
    let shows = |name: &str| match name {
        "bash" => "set; declare -p; declare -f; history; fc -l; bind -X; bind -S; trap; alias; shopt; hash; env",
        "zsh" => {
            "set; typeset; functions; fc -l; bindkey -L; trap; alias; setopt; hash; zle -lL; env; print -r -- $PS1"
        }
        _ => "set; functions -a; functions __aish_say __aish_mark fish_prompt; bind; history; env",
    };
    each("", async |bench| {
        // `fc` of a shell without a history fails.
        let shown = bench.run(shows(bench.name)).await.output.text(None);
        let keys: std::collections::BTreeSet<&str> = shown
            .split(|c: char| !c.is_ascii_hexdigit())
            .filter(|word| word.len() == 32)
            .collect();
        for key in keys {
            let forged = format!(
                "printf '\\033]133;D;k={key};0\\a\\033]133;L;k={key};echo forged\\n\\a'; echo after; sh -c 'exit 7'"
            );
            let ran = bench.run(&forged).await;
            assert_eq!(ran.ended, Ended::Exited(7), "{}: {key}", bench.name);
            assert!(ran.output.text(None).contains("after"), "{}: {ran:?}", bench.name);
            assert_eq!(ran.typed_ahead, "", "{}", bench.name);
        }
    });
}

/// SPEC 8.2: what the next line finds of the one before is as if nothing had run between them.
#[test]
fn what_the_next_line_finds() {
    play(
        "bash",
        "HISTCONTROL=ignoredups\nHISTFILE=~/history\n",
        &[
            ("echo $HISTCONTROL", "ignoredups"),
            ("true | sh -c 'exit 5' | true", ""),
            ("echo ${PIPESTATUS[@]}", "0 5 0"),
            ("true last-word", ""),
            ("echo $_", "last-word"),
            ("history -w; grep -c '[_]_aish' ~/history || :", "0"),
        ],
    );
    play(
        "zsh",
        "HISTFILE=~/history; SAVEHIST=100; HISTSIZE=100\n",
        &[
            ("true | sh -c 'exit 5' | true", ""),
            ("echo $pipestatus", "0 5 0"),
            ("true last-word", ""),
            ("echo $_", "last-word"),
            ("fc -W; grep -c '[_]_aish' ~/history || :", "0"),
            ("[[ -o hist_ignore_space ]] || echo as it was", "as it was"),
        ],
    );
    play(
        "fish",
        "",
        &[
            ("true | sh -c 'exit 5' | true", ""),
            ("echo $pipestatus", "0 5 0"),
            ("history | grep -c __aish; true", "0"),
        ],
    );
    each("", async |bench| {
        bench.run("sh -c 'exit 5'").await;
        bench.shell.ask("true", super::bench::PATIENCE).await.unwrap();
        let status = if bench.name == "fish" {
            "echo $status"
        } else {
            "echo $?"
        };
        assert_eq!(bench.text(status).await, "5", "{}", bench.name);
    });
}

/// SPEC 8.2: prompts that are drawn again by themselves show nowhere.
#[test]
fn prompts_that_redraw_themselves() {
    let redraws = "TMOUT=1\nTRAPALRM() { PROMPT='drawn-again> '; zle reset-prompt }\n";
    let worker = "setopt prompt_subst\nits_done() { PROMPT='drawn-again> '; RPROMPT='drawn-right'; zle .reset-prompt; zle -R; zle -F $1; exec {1}<&- }\n\
                  its_precmd() { PROMPT='waiting> '; exec {worker}< <(sleep 0.1; echo done); zle -F $worker its_done }\n\
                  precmd_functions+=(its_precmd)\n";
    for start_up in [redraws, worker] {
        let bench = Bench::new("zsh", start_up);
        runtime().block_on(async {
            assert_eq!(bench.text("echo one").await, "one", "{start_up}");
            // Long enough for either to have drawn; if it has not, nothing is proven, and nothing fails.
            tokio::time::sleep(std::time::Duration::from_millis(1_500)).await;
            assert_eq!(bench.text("echo two").await, "two", "{start_up}");
            let beside = bench.beside.lock().unwrap().clone();
            assert!(!beside.contains("drawn-"), "{start_up}: {beside}");
            bench.run("sh -c 'sleep 0.2; echo from-a-job' &").await;
            bench.tells("from-a-job").await;
        });
    }
}
