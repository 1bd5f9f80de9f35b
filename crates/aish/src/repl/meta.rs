//! Meta commands: one table, from which `:help`, completion and the reading of a line are all made.

use crate::term::columns::{beside, wrapped};
use aish_core::policy::ApprovalMode;
use aish_mcp::Alias;
use std::num::NonZeroUsize;

/// A meta command as typed, its argument read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Meta {
    /// Say what there is.
    Help,
    /// Say which model is asked, or ask another from now on.
    Model(Option<String>),
    /// List the models.
    Models,
    /// List the tools.
    Tools,
    /// Say which rules hold, or change the mode.
    Policy(Option<ApprovalMode>),
    /// Empty the context.
    Clear,
    /// Go on with another session: that one, or the one used last.
    Resume(Option<String>),
    /// List the sessions.
    Sessions,
    /// Show the whole result of a call: that one, or the last.
    Show(Option<String>),
    /// Put a part of the last reply on the clipboard.
    Copy(Copied),
    /// Show the last thinking in full.
    Thinking,
    /// Say what was used: tokens, money, context.
    Usage,
    /// Something about MCP servers; what, as it was typed.
    Mcp(String),
    /// Ask a prompt of a server, `alias.name`; the whole line, since names may be quoted.
    Prompt(String),
    /// Leave.
    Quit,
}

/// Which part of a reply is copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Copied {
    /// Its last block of code.
    LastBlock,
    /// Its nth block of code.
    Block(NonZeroUsize),
    /// All of it.
    All,
}

/// A line that is no meta command.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Mistake {
    /// There is none of that name.
    #[error("no command :{name}{}; :help lists them", nearest.map(|near| format!(" (did you mean :{near}?)")).unwrap_or_default())]
    Unknown {
        /// What was typed.
        name: String,
        /// The nearest there is, if any is near.
        nearest: Option<&'static str>,
    },
    /// It cannot be used like that.
    #[error(":{usage} is how it is written{hint}")]
    Usage {
        /// The command with its arguments.
        usage: String,
        /// What was wrong, if there is more to say.
        hint: String,
    },
}

/// What may follow a command, for completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Argument {
    /// Nothing.
    None,
    /// A model's name.
    Model,
    /// An approval mode.
    Mode,
    /// A session's id.
    Session,
    /// A call's id.
    Call,
    /// A part of a reply.
    Part,
    /// What to do about servers.
    Mcp,
}

/// A line of the table.
pub struct Command {
    /// Without the colon.
    pub name: &'static str,
    /// As `:help` writes it; empty for none.
    pub arguments: &'static str,
    /// What may follow.
    pub argument: Argument,
    /// One line.
    pub help: &'static str,
    read: fn(Option<&str>) -> Option<Meta>,
}

/// Every meta command.
pub const COMMANDS: &[Command] = &[
    Command {
        name: "help",
        arguments: "",
        argument: Argument::None,
        help: "this list",
        read: |argument| argument.is_none().then_some(Meta::Help),
    },
    Command {
        name: "model",
        arguments: "[NAME]",
        argument: Argument::Model,
        help: "another model from now on, the same conversation",
        read: |argument| Some(Meta::Model(argument.map(str::to_owned))),
    },
    Command {
        name: "models",
        arguments: "",
        argument: Argument::None,
        help: "the models there are",
        read: |argument| argument.is_none().then_some(Meta::Models),
    },
    Command {
        name: "tools",
        arguments: "",
        argument: Argument::None,
        help: "the tools the model may call",
        read: |argument| argument.is_none().then_some(Meta::Tools),
    },
    Command {
        name: "policy",
        arguments: "[ask|auto|full]",
        argument: Argument::Mode,
        help: "the rules that hold, or when to ask from now on",
        read: |argument| match argument {
            None => Some(Meta::Policy(None)),
            Some(word) => mode(word).map(|mode| Meta::Policy(Some(mode))),
        },
    },
    Command {
        name: "clear",
        arguments: "",
        argument: Argument::None,
        help: "empties the context; the ledger keeps everything",
        read: |argument| argument.is_none().then_some(Meta::Clear),
    },
    Command {
        name: "resume",
        arguments: "[ID]",
        argument: Argument::Session,
        help: "go on with a session: that one, or the last used",
        read: |argument| Some(Meta::Resume(argument.map(str::to_owned))),
    },
    Command {
        name: "sessions",
        arguments: "",
        argument: Argument::None,
        help: "the sessions used last",
        read: |argument| argument.is_none().then_some(Meta::Sessions),
    },
    Command {
        name: "show",
        arguments: "[CALL]",
        argument: Argument::Call,
        help: "the whole result of a call: that one, or the last",
        read: |argument| Some(Meta::Show(argument.map(str::to_owned))),
    },
    Command {
        name: "copy",
        arguments: "[N|all]",
        argument: Argument::Part,
        help: "the last reply's code to the clipboard, or all of it",
        read: |argument| match argument {
            None => Some(Meta::Copy(Copied::LastBlock)),
            Some(ALL) => Some(Meta::Copy(Copied::All)),
            Some(number) => number.parse().ok().map(|number| Meta::Copy(Copied::Block(number))),
        },
    },
    Command {
        name: "thinking",
        arguments: "",
        argument: Argument::None,
        help: "what the model thought last, in full",
        read: |argument| argument.is_none().then_some(Meta::Thinking),
    },
    Command {
        name: "usage",
        arguments: "",
        argument: Argument::None,
        help: "tokens, cost, and how full the context is",
        read: |argument| argument.is_none().then_some(Meta::Usage),
    },
    Command {
        name: "mcp",
        arguments: "[COMMAND]",
        argument: Argument::Mcp,
        help: "MCP servers; alone it lists its commands",
        read: |argument| Some(Meta::Mcp(argument.unwrap_or_default().to_owned())),
    },
    Command {
        name: "quit",
        arguments: "",
        argument: Argument::None,
        help: "leave; Ctrl-D on an empty line does the same",
        read: |argument| argument.is_none().then_some(Meta::Quit),
    },
];

/// What begins `:help`: the two things a line can be.
const FIRST: &str = "\
A command runs in your shell, a question goes to the model: the prompt shows \
which before Enter. Ctrl-T flips it; ! or ? in front of the line forces it.";
/// Columns in which that is written at most.
const SENTENCE_COLUMNS_MAX: usize = 79;

/// What is not a meta command, for `:help`.
const OTHER_INPUT: &[(&str, &str)] = &[
    (
        "@path, @alias:uri",
        "in a question: that file, image or resource goes too",
    ),
    (":alias.prompt", "that MCP server's prompt; key=value fills it in"),
    (
        "Tab, Ctrl-R, Alt-Enter",
        "completes; searches the history; begins another line",
    ),
    (
        "while it answers",
        "Enter keeps a line for later; Alt-Enter tells it now",
    ),
    ("Alt-W, or ? alone", "asks why the last command failed"),
    ("Ctrl-C", "stops what runs, or clears the line; quits nothing"),
];

/// What `:copy` calls a whole reply.
pub const ALL: &str = "all";

/// Names no further apart than this many edits may have been meant.
const MISTYPED_EDITS_MAX: usize = 2;

/// The modes as they are written.
pub const MODES: &[ApprovalMode] = &[ApprovalMode::Ask, ApprovalMode::Auto, ApprovalMode::Full];

fn mode(word: &str) -> Option<ApprovalMode> {
    MODES.iter().copied().find(|mode| mode.word() == word)
}

/// Reads a line without its colon.
///
/// # Errors
/// What is wrong with it, one line.
pub fn parse(line: &str) -> Result<Meta, Mistake> {
    let line = line.trim();
    let (name, argument) = match line.split_once(char::is_whitespace) {
        Some((name, argument)) => (name, Some(argument.trim())),
        None => (line, None),
    };
    let Some(command) = COMMANDS.iter().find(|command| command.name == name) else {
        if name
            .split_once('.')
            .is_some_and(|(alias, _)| Alias::parse(alias).is_ok())
        {
            return Ok(Meta::Prompt(line.to_owned()));
        }
        let nearest = nearest(name, COMMANDS.iter().map(|command| command.name));
        return Err(Mistake::Unknown {
            name: name.to_owned(),
            nearest,
        });
    };
    (command.read)(argument).ok_or_else(|| Mistake::Usage {
        usage: usage(command),
        hint: match command.argument {
            Argument::None => "; nothing follows it".to_owned(),
            Argument::Model | Argument::Mode | Argument::Session | Argument::Call | Argument::Part | Argument::Mcp => {
                String::new()
            }
        },
    })
}

/// The name that was probably meant: a few edits away, else one that begins so.
pub fn nearest(typed: &str, names: impl Iterator<Item = &'static str> + Clone) -> Option<&'static str> {
    names
        .clone()
        .map(|name| (strsim::damerau_levenshtein(typed, name), name))
        .filter(|(edits, near)| *edits <= MISTYPED_EDITS_MAX.min(near.len() / 2))
        .min()
        .map(|(_, near)| near)
        .or_else(|| {
            let mut names = names;
            names.find(|full| !typed.is_empty() && full.starts_with(typed))
        })
}

fn usage(command: &Command) -> String {
    [command.name, command.arguments].join(" ").trim_end().to_owned()
}

/// What `:help` says in so many columns: one screen, where it is of the usual size.
pub fn help(columns: usize) -> String {
    let commands = COMMANDS
        .iter()
        .map(|command| (format!(":{}", usage(command)), command.help));
    let others = OTHER_INPUT.iter().map(|(input, help)| ((*input).to_owned(), *help));
    let lines: Vec<(String, &str)> = commands.chain(others).collect();
    wrapped(FIRST, columns.min(SENTENCE_COLUMNS_MAX)) + &beside(&lines, columns)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SPEC 8.1: every command of the table is read, with and without its argument.
    #[test]
    fn every_command_is_read() {
        for command in COMMANDS {
            assert!(parse(command.name).is_ok(), "{}", command.name);
            let takes_none = command.argument == Argument::None;
            let word = if command.argument == Argument::Part { ALL } else { "ask" };
            assert_eq!(
                parse(&format!("{} {word}", command.name)).is_err(),
                takes_none,
                "{}",
                command.name
            );
        }
        assert_eq!(parse("policy  auto "), Ok(Meta::Policy(Some(ApprovalMode::Auto))));
        let second = NonZeroUsize::MIN.saturating_add(1);
        assert_eq!(parse("copy 2"), Ok(Meta::Copy(Copied::Block(second))));
        assert_eq!(parse("model desk"), Ok(Meta::Model(Some("desk".into()))));
        assert_eq!(parse("mcp  tools git"), Ok(Meta::Mcp("tools git".into())));
        assert_eq!(parse("git.log a=b"), Ok(Meta::Prompt("git.log a=b".into())));
    }

    /// SPEC 10.4: a mistake says what to do.
    #[test]
    fn mistakes() {
        let check = |line: &str, expect: &str| {
            assert_eq!(
                parse(line).map_err(|mistake| mistake.to_string()),
                Err(expect.to_owned())
            );
        };
        check("quti", "no command :quti (did you mean :quit?); :help lists them");
        check("sess", "no command :sess (did you mean :sessions?); :help lists them");
        check("xyzzy", "no command :xyzzy; :help lists them");
        check("", "no command :; :help lists them");
        check("Git.log", "no command :Git.log; :help lists them");
        check("copy 0", ":copy [N|all] is how it is written");
        check("policy maybe", ":policy [ask|auto|full] is how it is written");
        check("quit now", ":quit is how it is written; nothing follows it");
    }

    /// `:help` fits one screen of 24 rows and 80 columns.
    #[test]
    fn help_fits_a_screen() {
        let help = help(79);
        assert!(help.lines().count() < 24);
        assert!(help.lines().all(|line| line.chars().count() < 80), "{help}");
        insta::assert_snapshot!(help, @"
        A command runs in your shell, a question goes to the model: the prompt shows
        which before Enter. Ctrl-T flips it; ! or ? in front of the line forces it.
          :help                    this list
          :model [NAME]            another model from now on, the same conversation
          :models                  the models there are
          :tools                   the tools the model may call
          :policy [ask|auto|full]  the rules that hold, or when to ask from now on
          :clear                   empties the context; the ledger keeps everything
          :resume [ID]             go on with a session: that one, or the last used
          :sessions                the sessions used last
          :show [CALL]             the whole result of a call: that one, or the last
          :copy [N|all]            the last reply's code to the clipboard, or all of it
          :thinking                what the model thought last, in full
          :usage                   tokens, cost, and how full the context is
          :mcp [COMMAND]           MCP servers; alone it lists its commands
          :quit                    leave; Ctrl-D on an empty line does the same
          @path, @alias:uri        in a question: that file, image or resource goes too
          :alias.prompt            that MCP server's prompt; key=value fills it in
          Tab, Ctrl-R, Alt-Enter   completes; searches the history; begins another line
          while it answers         Enter keeps a line for later; Alt-Enter tells it now
          Alt-W, or ? alone        asks why the last command failed
          Ctrl-C                   stops what runs, or clears the line; quits nothing
        ");
    }

    /// SPEC 8.9: in a narrow terminal no word of it is broken.
    #[test]
    fn help_in_a_narrow_terminal() {
        let help = help(43);
        assert!(help.lines().all(|line| line.chars().count() < 44), "{help}");
        insta::assert_snapshot!(help, @"
        A command runs in your shell, a question
        goes to the model: the prompt shows which
        before Enter. Ctrl-T flips it; ! or ? in
        front of the line forces it.
          :help
              this list
          :model [NAME]
              another model from now on, the same
              conversation
          :models
              the models there are
          :tools
              the tools the model may call
          :policy [ask|auto|full]
              the rules that hold, or when to ask
              from now on
          :clear
              empties the context; the ledger keeps
              everything
          :resume [ID]
              go on with a session: that one, or
              the last used
          :sessions
              the sessions used last
          :show [CALL]
              the whole result of a call: that one,
              or the last
          :copy [N|all]
              the last reply's code to the
              clipboard, or all of it
          :thinking
              what the model thought last, in full
          :usage
              tokens, cost, and how full the
              context is
          :mcp [COMMAND]
              MCP servers; alone it lists its
              commands
          :quit
              leave; Ctrl-D on an empty line does
              the same
          @path, @alias:uri
              in a question: that file, image or
              resource goes too
          :alias.prompt
              that MCP server's prompt; key=value
              fills it in
          Tab, Ctrl-R, Alt-Enter
              completes; searches the history;
              begins another line
          while it answers
              Enter keeps a line for later;
              Alt-Enter tells it now
          Alt-W, or ? alone
              asks why the last command failed
          Ctrl-C
              stops what runs, or clears the line;
              quits nothing
        ");
    }

    /// Where nothing is laid out, each line is one line.
    #[test]
    fn help_without_a_width() {
        assert_eq!(help(usize::MAX), help(79));
    }
}
