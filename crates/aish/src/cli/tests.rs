//! The command line, as people type it.

#![allow(clippy::unwrap_used)]
use super::*;

fn cli(line: &str) -> Cli {
    parse(words(line)).unwrap()
}

fn error(line: &str) -> clap::Error {
    parse(words(line)).unwrap_err()
}

fn words(line: &str) -> Vec<String> {
    format!("aish {line}")
        .split_whitespace()
        .map(|word| word.replace('+', " "))
        .collect()
}

/// SPEC 10.3: the options of one-shot use.
#[test]
fn one_shot_options() {
    let all = cli("-p hi+there --output json --model desk --approval auto --no-tools --config c.toml --cd /d");
    assert_eq!(all.prompt.as_deref(), Some("hi there"));
    assert_eq!(all.common.output, Output::Json);
    assert_eq!(all.common.model.as_deref(), Some("desk"));
    assert_eq!(all.common.approval, Some(ApprovalMode::Auto));
    assert!(all.common.no_tools);
    assert_eq!(all.common.config, Some("c.toml".into()));
    assert_eq!(all.common.cd, Some("/d".into()));
    assert_eq!(cli("-p - --output jsonl").common.output, Output::Jsonl);
    assert_eq!(cli("-p -").prompt.as_deref(), Some("-"));
    assert_eq!(cli("--prompt=-x").prompt.as_deref(), Some("-x"));
}

/// SPEC 2.8: a new session by default; `--continue` and `--resume [ID]` go on with one.
#[test]
fn which_session() {
    assert_eq!(cli("").start(), Start::New);
    assert_eq!(cli("--continue").start(), Start::Last);
    assert_eq!(cli("--resume").start(), Start::Choose);
    assert_eq!(cli("--resume -p x").start(), Start::Choose);
    assert_eq!(cli("--resume 0199 -p x").start(), Start::Session("0199".into()));
}

/// SPEC 5.6, 3.3: answers from a script, several of them, bound to a digest or not.
#[test]
fn answers() {
    let Some(Command::Resume(resume)) = cli(
        "resume ID --approve call_1_1:3F9A1C22B07D --approve call_1_2 --deny call_1_3:no:+not+there --deny call_1_4:",
    )
    .command
    else {
        unreachable!("resume was typed");
    };
    let approval = |call, digest: Option<&str>| Approval {
        call: CallId::new(call),
        digest: digest.map(str::to_owned),
    };
    let denial = |call, reason: Option<&str>| Denial {
        call: CallId::new(call),
        reason: reason.map(str::to_owned),
    };
    assert_eq!(resume.id, "ID");
    assert_eq!(
        resume.approve,
        [approval("call_1_1", Some("3f9a1c22b07d")), approval("call_1_2", None)]
    );
    assert_eq!(
        resume.deny,
        [denial("call_1_3", Some("no: not there")), denial("call_1_4", None)]
    );
}

/// SPEC 10.2: every wrong command line is exit code 2.
#[test]
fn wrong_usage_is_exit_code_2() {
    let wrong = [
        "--continue --resume",
        "-p",
        "-p x sessions list",
        "--continue config",
        "--output json",
        "-p x --output yaml",
        "-p x --approval yolo",
        "resume",
        "resume ID --approve call_1_1:zz",
        "resume ID --approve call_1_1:3f9a",
        "resume ID --approve :3f9a1c22b07d",
        "resume ID --approve call_1_1:",
        "resume ID --approve call_1_1:+",
        "resume ID --approve c --deny c",
        "sessions",
        "sessions export ID --format pdf",
        "mcp",
        "mcp tool",
        "mcp add",
        "mcp add git",
        "mcp add git http://h/mcp -- git",
        "mcp add git http://h/mcp --env A=b",
        "mcp add git --token-env T -- git",
        "mcp add git --header A:b -- git",
        "mcp add git http://h/mcp --header A",
        "mcp add git --env A -- git",
        "mcp add git http://h/mcp --cwd /srv",
        "mcp add git --env =b -- git",
        "mcp add git http://h/mcp --timeout soon",
        "mcp import",
        "mcp import f --yes --dry-run",
        "mcp serve --http 7777",
        "frobnicate",
        "--modle x",
    ];
    for line in wrong {
        let error = error(line);
        assert_eq!((error.exit_code(), error.use_stderr()), (2, true), "{line}: {error}");
    }
}

#[test]
fn commands() {
    let command = |line| cli(line).command.unwrap();
    let list = |served| Command::Sessions {
        served,
        what: Sessions::List,
    };
    assert_eq!(command("sessions list"), list(false));
    assert_eq!(command("sessions --served list"), list(true));
    assert_eq!(command("sessions list --served"), list(true));
    assert_eq!(
        command("sessions export ID --format markdown -o out.md"),
        Command::Sessions {
            served: false,
            what: Sessions::Export {
                id: "ID".into(),
                format: ExportFormat::Markdown,
                file: Some("out.md".into())
            }
        }
    );
    assert_eq!(command("models list"), Command::Models(Models::List));
    assert_eq!(command("config"), Command::Config { what: None });
    assert_eq!(
        command("config path"),
        Command::Config {
            what: Some(ConfigCommand::Path)
        }
    );
    assert_eq!(
        command("trust --remove d"),
        Command::Trust {
            dir: Some("d".into()),
            remove: true
        }
    );
    assert_eq!(cli("config show --config c.toml").common.config, Some("c.toml".into()));
    assert_eq!(cli("--output json resume ID").common.output, Output::Json);
}

/// SPEC 6.4: a server is a URL or a command, and what comes after `--` is the command's own.
#[test]
fn servers_to_add() {
    let add = |line| match cli(line).command {
        Some(Command::Mcp(Mcp::Add(add))) => add,
        other => unreachable!("{other:?}"),
    };
    let http =
        add("mcp add b http://h/mcp --header X-A:+one:two --token-env T --timeout 5 --tool a --tool b --required");
    assert_eq!((http.alias.as_str(), http.url.as_deref()), ("b", Some("http://h/mcp")));
    assert_eq!(http.headers, [("X-A".to_owned(), "one:two".to_owned())]);
    assert_eq!((http.token_env.as_deref(), http.timeout), (Some("T"), Some(5)));
    assert_eq!((http.only.len(), http.required, http.trusted), (2, true, false));
    let stdio = add("mcp add g --env A=b=c --no-tool x -- git-server --env no -- y");
    assert_eq!(stdio.url, None);
    assert_eq!(stdio.command, ["git-server", "--env", "no", "--", "y"]);
    assert_eq!(stdio.env, [("A".to_owned(), "b=c".to_owned())]);
    assert_eq!(stdio.never, ["x"]);
}

#[test]
fn version() {
    let version = error("--version");
    assert_eq!((version.to_string().as_str(), version.exit_code()), ("aish 0.1.0\n", 0));
}

/// Every page of help fits 80 columns.
#[test]
fn help_fits() {
    let pages = [
        "--help",
        "resume --help",
        "sessions --help",
        "sessions export --help",
        "models --help",
        "config --help",
        "trust --help",
        "models probe --help",
        "doctor --help",
        "mcp --help",
        "mcp list --help",
        "mcp tools --help",
        "mcp tool --help",
        "mcp add --help",
        "mcp remove --help",
        "mcp login --help",
        "mcp import --help",
        "mcp serve --help",
        "serve --help",
    ];
    for line in pages {
        let help = error(line).to_string();
        for line in help.lines() {
            assert!(line.chars().count() <= 80, "{line}");
        }
    }
}

/// The first page of help, whole.
#[test]
fn first_page_of_help() {
    insta::assert_snapshot!(error("--help"), @r"
    A shell you can also talk to: commands and questions at one prompt.

    Usage: aish [OPTIONS] [COMMAND]

    Commands:
      resume       Go on with a session, answering what it waits for
      sessions     List, show or export sessions
      models       List models, or find out what one can do
      mcp          List, add or import MCP servers, or be one
      serve        Serve apps that run tools of their own, over HTTP
      policy       Say what the rules make of a command
      doctor       Check everything aish needs, and say what to do
      config       Show the configuration, where it is, or what can be set
      trust        Trust a project directory: read its .aish/ and AGENTS.md
      completions  Print completions for bash, zsh or fish
      man          Print the manual page, or write all of them

    Options:
      -p, --prompt <PROMPT>  Answer one prompt and exit; - reads it from stdin
          --continue         Go on with the session used last
          --resume [<ID>]    Go on with this session, or the one used last
          --schema <FILE>    The answer is JSON that fits this JSON Schema
          --output <FORMAT>  How the answer is written: text, json or jsonl
          --model <NAME>     Use this model of the configuration, or PRESET/MODEL
          --approval <MODE>  What to ask about: ask, auto or full
          --no-tools         Offer the model no tools
          --plain            Words instead of layout, for screen readers
          --config <FILE>    Read this configuration file
          --cd <DIR>         Work in this directory
      -h, --help             Print help
      -V, --version          Print version

    Examples:
      aish                                    open the shell
      aish -p 'what is in this folder?'       ask once
      git diff | aish -p 'review this'        ask about what a command printed
      aish --continue                         go on where you left off
      aish resume ID --approve call_1_1       answer a call that waits
      aish --model anthropic/claude-opus-4-5  another model; the key is all it needs
      aish doctor                             what is wrong, and what to do
      aish config reference                   everything that can be set

    Exit codes: 0 done, 1 failed, 2 wrong usage or configuration, 3 an approval is
    needed, 130 interrupted.
    ");
    insta::assert_snapshot!(error("resume --help"), @r"
    Go on with a session, answering what it waits for

    Usage: aish resume [OPTIONS] <ID>

    Arguments:
      <ID>  The session

    Options:
          --approve <CALL_ID[:DIGEST]>
              Let this call run; the digest makes sure it is the one you saw
          --deny <CALL_ID[:REASON]>
              Refuse this call, and tell the model why
          --output <FORMAT>
              How the answer is written: text, json or jsonl
          --model <NAME>
              Use this model of the configuration, or PRESET/MODEL
          --approval <MODE>
              What to ask about: ask, auto or full
          --no-tools
              Offer the model no tools
          --plain
              Words instead of layout, for screen readers
          --config <FILE>
              Read this configuration file
          --cd <DIR>
              Work in this directory
      -h, --help
              Print help

    Examples:
      aish resume ID                          answer at the terminal
      aish resume ID --approve call_1_1:3f9a1c22b07d
      aish resume ID --deny 'call_1_2:use the staging host'

    --approve and --deny may be given several times. While other calls still wait,
    the exit code is 3.
    ");
}
