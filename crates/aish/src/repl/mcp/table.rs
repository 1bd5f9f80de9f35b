//! `:mcp …`: one table, from which its help, its completion and the reading of a line are all made.

use crate::repl::meta::nearest;
use crate::term::columns::beside;

/// What follows `:mcp`, read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// Say what there is.
    Help,
    /// List the servers.
    List,
    /// Connect to the server at an address, under an alias or one made from the address.
    Connect { address: String, alias: Option<String> },
    /// End the connection to a server, and forget it.
    Disconnect(String),
    /// Fetch what a server offers anew; connect to it now if it is not connected.
    Reconnect(String),
    /// List the tools: of that server, or of all.
    Tools(Option<String>),
    /// Show a tool in full.
    Tool(String),
    /// List the prompts.
    Prompts(Option<String>),
    /// List the resources and their templates.
    Resources(Option<String>),
    /// Log in at a server.
    Login(String),
    /// Show what a server wrote.
    Log(String),
}

/// What may follow, for completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Follows {
    /// Nothing that could be known.
    Nothing,
    /// The alias of a server.
    Alias,
    /// The name of a tool.
    Tool,
}

/// A line of the table.
pub struct Row {
    /// The word behind `:mcp`.
    pub name: &'static str,
    /// As the help writes it; empty for none.
    arguments: &'static str,
    /// What may follow.
    pub follows: Follows,
    /// One line.
    pub help: &'static str,
    read: fn(&str) -> Option<What>,
}

/// Everything that `:mcp` can do.
pub const ROWS: &[Row] = &[
    Row {
        name: "list",
        arguments: "",
        follows: Follows::Nothing,
        help: "the servers: alias, address, tools, how they do",
        read: |rest| rest.is_empty().then_some(What::List),
    },
    Row {
        name: "connect",
        arguments: "URL [ALIAS]",
        follows: Follows::Nothing,
        help: "connects to a server until you leave",
        read: |rest| {
            let mut words = rest.split_whitespace();
            let address = words.next()?.to_owned();
            let alias = words.next().map(str::to_owned);
            words.next().is_none().then_some(What::Connect { address, alias })
        },
    },
    Row {
        name: "disconnect",
        arguments: "ALIAS",
        follows: Follows::Alias,
        help: "ends the connection to a server",
        read: |rest| one(rest).map(What::Disconnect),
    },
    Row {
        name: "reconnect",
        arguments: "ALIAS",
        follows: Follows::Alias,
        help: "fetches what it offers anew, or connects",
        read: |rest| one(rest).map(What::Reconnect),
    },
    Row {
        name: "tools",
        arguments: "[ALIAS]",
        follows: Follows::Alias,
        help: "the tools, a line each",
        read: |rest| at_most_one(rest).map(What::Tools),
    },
    Row {
        name: "tool",
        arguments: "ALIAS.NAME",
        follows: Follows::Tool,
        help: "a tool in full, with its schema",
        // A server may have put anything into the name.
        read: |rest| (!rest.is_empty()).then(|| What::Tool(rest.to_owned())),
    },
    Row {
        name: "prompts",
        arguments: "[ALIAS]",
        follows: Follows::Alias,
        help: "the prompts; :ALIAS.NAME asks one",
        read: |rest| at_most_one(rest).map(What::Prompts),
    },
    Row {
        name: "resources",
        arguments: "[ALIAS]",
        follows: Follows::Alias,
        help: "the resources; @ALIAS:URI in a text sends one",
        read: |rest| at_most_one(rest).map(What::Resources),
    },
    Row {
        name: "login",
        arguments: "ALIAS",
        follows: Follows::Alias,
        help: "logs in at a server that asks for it",
        read: |rest| one(rest).map(What::Login),
    },
    Row {
        name: "log",
        arguments: "ALIAS",
        follows: Follows::Alias,
        help: "what a server wrote to its log and standard error",
        read: |rest| one(rest).map(What::Log),
    },
];

fn one(rest: &str) -> Option<String> {
    at_most_one(rest)?
}

/// A word, or nothing; `None` for more.
fn at_most_one(rest: &str) -> Option<Option<String>> {
    match rest {
        "" => Some(None),
        rest => (!rest.contains(char::is_whitespace)).then(|| Some(rest.to_owned())),
    }
}

/// Reads what follows `:mcp`.
///
/// # Errors
/// What is wrong with it, one line.
pub fn parse(line: &str) -> Result<What, String> {
    let line = line.trim();
    if line.is_empty() {
        return Ok(What::Help);
    }
    let (name, rest) = match line.split_once(char::is_whitespace) {
        Some((name, rest)) => (name, rest.trim()),
        None => (line, ""),
    };
    let Some(row) = ROWS.iter().find(|row| row.name == name) else {
        let near = nearest(name, ROWS.iter().map(|row| row.name));
        let hint = near.map(|near| format!(" (did you mean {near}?)")).unwrap_or_default();
        return Err(format!("no command :mcp {name}{hint}; :mcp lists them"));
    };
    (row.read)(rest).ok_or_else(|| {
        let hint = if row.arguments.is_empty() {
            "; nothing follows it"
        } else {
            ""
        };
        format!(":mcp {} is how it is written{hint}", usage(row))
    })
}

fn usage(row: &Row) -> String {
    [row.name, row.arguments].join(" ").trim_end().to_owned()
}

/// What `:mcp` alone says, in so many columns.
pub fn help(columns: usize) -> String {
    let lines: Vec<(String, &str)> = ROWS
        .iter()
        .map(|row| (format!(":mcp {}", usage(row)), row.help))
        .collect();
    beside(&lines, columns)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SPEC 6.4: the commands and what may follow them.
    #[test]
    fn commands() {
        let check = |line: &str, expect: What| assert_eq!(parse(line), Ok(expect), "{line:?}");
        check(" ", What::Help);
        check("list", What::List);
        let address = "http://127.0.0.1:8080/mcp".to_owned();
        check(
            "connect http://127.0.0.1:8080/mcp",
            What::Connect {
                address: address.clone(),
                alias: None,
            },
        );
        let alias = Some("desk".to_owned());
        check(
            "connect  http://127.0.0.1:8080/mcp desk ",
            What::Connect { address, alias },
        );
        check("tools", What::Tools(None));
        check("tools git", What::Tools(Some("git".to_owned())));
        check("tool git.a b.c", What::Tool("git.a b.c".to_owned()));
        check("log git", What::Log("git".to_owned()));
    }

    /// SPEC 6.4, 10.4: what is wrong is said in one line.
    #[test]
    fn mistakes() {
        let check = |line: &str, expect: &str| assert_eq!(parse(line), Err(expect.to_owned()), "{line:?}");
        check(
            "conect x",
            "no command :mcp conect (did you mean connect?); :mcp lists them",
        );
        check("xyzzy", "no command :mcp xyzzy; :mcp lists them");
        check("connect", ":mcp connect URL [ALIAS] is how it is written");
        check("connect a b c", ":mcp connect URL [ALIAS] is how it is written");
        check("disconnect", ":mcp disconnect ALIAS is how it is written");
        check("list all", ":mcp list is how it is written; nothing follows it");
        check("tool", ":mcp tool ALIAS.NAME is how it is written");
        check("prompts a b", ":mcp prompts [ALIAS] is how it is written");
    }

    /// It fits a screen of 24 rows and 80 columns.
    #[test]
    fn help_fits_a_screen() {
        let help = help(79);
        assert!(help.lines().count() < 24);
        assert!(help.lines().all(|line| line.chars().count() < 80), "{help}");
        insta::assert_snapshot!(help, @"
        :mcp list                 the servers: alias, address, tools, how they do
        :mcp connect URL [ALIAS]  connects to a server until you leave
        :mcp disconnect ALIAS     ends the connection to a server
        :mcp reconnect ALIAS      fetches what it offers anew, or connects
        :mcp tools [ALIAS]        the tools, a line each
        :mcp tool ALIAS.NAME      a tool in full, with its schema
        :mcp prompts [ALIAS]      the prompts; :ALIAS.NAME asks one
        :mcp resources [ALIAS]    the resources; @ALIAS:URI in a text sends one
        :mcp login ALIAS          logs in at a server that asks for it
        :mcp log ALIAS            what a server wrote to its log and standard error
        ");
    }
}
