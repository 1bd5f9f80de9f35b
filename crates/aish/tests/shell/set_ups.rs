//! Start-up files as people have them: what the well-known frameworks, prompts and tools put into a shell, in small. Nothing of a
//! prompt shows, nothing is held up, and what is theirs still works.

use crate::person::Expected::{Exits, In, Mentions, Prints, Succeeds};
use crate::person::{BASH, Desk, FISH, Inner, play};
use crate::support::{default_wait, poll_until};

/// A bash with a title, hooks before each prompt and each command, and a prompt that a hook builds.
const BASH_SET_UP: &str = r#"
case $- in *i*) ;; *) return ;; esac
HISTCONTROL=ignoreboth
shopt -s histappend checkwinsize
PS1='\[\e]0;\u@\h: \w\a\]${debian_chroot:+($debian_chroot)}\u@\h:\w\$ '
__its_start() { started=${started:-now}; }
trap '__its_start' DEBUG
__its_prompt() { local status=$?; PS1="its-prompt [$status] "; unset started; seen=$status; }
_its_folder_hook() { local status=$?; trap -- '' SIGINT; [ -f .its ] && . ./.its; trap - SIGINT; return $status; }
if [[ ";${PROMPT_COMMAND[*]:-};" != *";_its_folder_hook;"* ]]; then
  PROMPT_COMMAND="_its_folder_hook${PROMPT_COMMAND:+;$PROMPT_COMMAND}"
fi
PROMPT_COMMAND="__its_prompt; $PROMPT_COMMAND"
alias ll='ls -l'
eval "its_tool() { echo tool; }"
"#;

/// A zsh as frameworks set it up: hooks in lists, a prompt with substitutions, widgets around those of the line editor.
const ZSH_SET_UP: &str = r#"
setopt prompt_subst auto_cd interactive_comments share_history hist_verify correct
autoload -Uz colors add-zsh-hook url-quote-magic bracketed-paste-magic
colors
zle -N self-insert url-quote-magic
zle -N bracketed-paste bracketed-paste-magic
its_git() { echo its-branch }
PROMPT='%{$fg[green]%}its-prompt %c%{$reset_color%} $(its_git) '
RPROMPT='its-right %?'
its_precmd() { print -Pn '\e]0;%~\a'; seen=$? }
its_preexec() { print -Pn '\e]0;busy\a'; began=$1 }
add-zsh-hook precmd its_precmd
add-zsh-hook preexec its_preexec
its_line_init() { print -n '\e[5 q' }
zle -N zle-line-init its_line_init
zle-keymap-select() { zle reset-prompt }
zle -N zle-keymap-select
bindkey -v
alias ll='ls -l'
"#;

/// A prompt that shows before the files are read and is taken away then, as some do to seem fast.
const ZSH_INSTANT_PROMPT: &str = r#"
print -rn -- $'\e7its-instant-prompt> '
exec {its_out}>&1 {its_err}>&2 >~/captured 2>&1
autoload -Uz add-zsh-hook
its_first() {
  exec >&$its_out 2>&$its_err {its_out}>&- {its_err}>&-
  print -rn -- $'\e8\e[J'
  cat ~/captured
  add-zsh-hook -d precmd its_first
}
add-zsh-hook precmd its_first
echo printed-meanwhile
"#;

/// A fish with a prompt on two sides that is drawn again when something is known, and hooks of its own.
const FISH_SET_UP: &str = r#"
function fish_prompt; set -g seen $status; echo 'its-prompt> '; end
function fish_right_prompt; echo its-right; end
function fish_mode_prompt; echo its-mode; end
function its_repaint --on-signal SIGUSR1; commandline -f repaint; end
function its_prompt_hook --on-event fish_prompt; sh -c "sleep 0.1; kill -USR1 $fish_pid" & disown; end
function its_folder_hook --on-variable PWD; set -g moved $PWD; end
fish_vi_key_bindings
alias ll 'ls -l'
"#;

/// SPEC 8.2: what such files set up is there, and statuses, directories and outputs are those of the lines.
#[test]
fn frameworks() {
    play(
        BASH,
        BASH_SET_UP,
        &[
            ("cd below", Succeeds),
            ("pwd", In("below")),
            ("sh -c 'exit 3'", Exits(3)),
            ("echo $seen", Prints("3")),
            ("!ll deep", Mentions("marker")),
            ("!its_tool", Prints("tool")),
            ("echo 'folder=hooked' > .its", Succeeds),
            ("echo $folder", Prints("hooked")),
            ("source ~/.bashrc", Succeeds),
            ("echo ${started:-}", Prints("now")),
            ("false | true | sh -c 'exit 7'", Exits(7)),
        ],
    );
    play(
        &[Inner::Zsh],
        ZSH_SET_UP,
        &[
            ("cd below", Succeeds),
            ("pwd", In("below")),
            ("sh -c 'exit 3'", Exits(3)),
            ("echo $began", Prints("echo $began")),
            ("!ll deep", Mentions("marker")),
            (
                "echo 'https://example.org/?a=b&c'",
                Prints("https://example.org/?a=b&c"),
            ),
            ("source ~/.zshrc", Succeeds),
            ("echo again", Prints("again")),
            ("false | true | sh -c 'exit 7'", Exits(7)),
        ],
    );
    play(
        FISH,
        FISH_SET_UP,
        &[
            ("cd below", Succeeds),
            ("pwd", In("below")),
            ("basename $moved", Prints("below")),
            ("sh -c 'exit 3'", Exits(3)),
            ("!ll deep", Mentions("marker")),
            ("source ~/.config/fish/config.fish", Succeeds),
            ("echo again", Prints("again")),
        ],
    );
}

/// A tool that installs itself in the variable when the first prompt comes, once, as its hooks find that they are there.
const BASH_INSTALLS_ITSELF: &str = r#"
its_hook='its_install'
its_count=0 its_good=0
its_precmd() { local status=$?; its_count=$((its_count + 1)); [ "$status" != 0 ] || its_good=$((its_good + 1)); }
its_install() {
  [[ ${PROMPT_COMMAND[*]} != *its_precmd* ]] || return
  PROMPT_COMMAND="its_precmd
${PROMPT_COMMAND//$its_hook/:}"
  PROMPT_COMMAND+=(':')
}
PROMPT_COMMAND="true
$its_hook"
TMOUT=1
"#;

/// SPEC 8.2: what runs before each prompt finds the status of the line, and runs once, also where it puts itself there while it runs.
/// Nobody is thrown out for reading an answer.
#[test]
fn prompt_commands() {
    play(
        BASH,
        BASH_INSTALLS_ITSELF,
        &[
            ("true", Succeeds),
            ("true", Succeeds),
            ("sh -c 'exit 3'", Exits(3)),
            ("true", Succeeds),
            ("echo $its_count $its_good", Prints("4 3")),
            ("true", Succeeds),
            ("echo $its_count ${#PROMPT_COMMAND[@]}", Prints("6 1")),
            ("echo $TMOUT", Prints("0")),
        ],
    );
}

/// SPEC 8.2: no prompt of such files shows, whenever it is drawn, and a banner shows once.
#[test]
fn no_prompt_but_ours() {
    for (inner, start_up) in [
        (Inner::Bash, BASH_SET_UP),
        (Inner::Zsh, ZSH_SET_UP),
        (Inner::Zsh, ZSH_INSTANT_PROMPT),
        (Inner::Fish, FISH_SET_UP),
    ] {
        let person = Desk::with(inner)
            .start_up(&format!("{start_up}\necho its-banner\n"))
            .sit_down();
        assert_eq!(person.runs("echo one").output, "one", "{inner:?}");
        // A shell that is waited on by a job of its own has drawn its prompt again by then, where it does.
        person.types("sleep 0.3");
        assert_eq!(person.runs("echo two").output, "two", "{inner:?}");
        let text = person.terminal.history_text();
        for shown in ["its-prompt", "its-right", "its-mode", "its-instant", "__aish", "133;"] {
            assert!(!text.contains(shown), "{inner:?}: {shown}: {text}");
        }
        let banners = text.matches("its-banner").count();
        assert_eq!(banners, 1, "{inner:?}: {text}");
        person.leaves();
    }
}

/// SPEC 8.2, 11: one that starts an agent that goes on, and a program that has the whole screen unless it runs within itself already:
/// the prompt is there all the same, and Ctrl-C at the first command gets past the program.
#[test]
fn an_agent_and_a_screen() {
    let start_up = "AGENT=$(sh -c 'sleep 1000 >/dev/null 2>&1 & echo $!')\nexport AGENT\n\
                    [ -n \"$MULTIPLEXER\" ] || sh -c 'touch ~/begun; printf \"\\033[?1049h\"; exec sleep 1000'\nexport MARK=after\n";
    for inner in [Inner::Bash, Inner::Zsh] {
        let person = Desk::with(inner).start_up(start_up).sit_down();
        let begun = person.sandbox.user().join("begun");
        poll_until("the program", default_wait(), || begun.exists().then_some(()));
        person.enters("echo first");
        person.presses_until("\x03", "the line in the next prompt", |screen| {
            screen.contents().contains("interrupted")
        });
        person.presses_until_prompt("\x03");
        assert_eq!(person.runs("echo $MARK").output, "after", "{inner:?}");
        // The agent is the person's: it goes on as it does behind a terminal, so it is ended here.
        person.types("kill $AGENT");
        person.leaves();
    }
}

/// SPEC 8.2, 8.8: a directory whose name has an escape, an end of a line and bytes that are no text: commands run there, and the
/// prompt shows it without writing it.
#[test]
fn odd_directories() {
    for inner in [Inner::Bash, Inner::Zsh] {
        let person = Desk::with(inner).sit_down();
        person.types("mkdir -p $'odd\\e]0;x\\a\\nname\\xff/inner'");
        person.types("cd odd*");
        person.sees("odd\\x1b]0;x\\x07");
        assert_eq!(person.runs("ls").output, "inner", "{inner:?}");
        assert_eq!(person.runs("cd inner && pwd | wc -l").output.trim(), "2", "{inner:?}");
        person.types("cd ../..");
        person.leaves();
    }
}
