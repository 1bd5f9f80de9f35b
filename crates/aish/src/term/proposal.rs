//! The question about a command that a reply proposes for the person's own shell (SPEC 8.4): what is shown, and what an answer
//! means.
//!
//! | answer | meaning |
//! |---|---|
//! | begins with `y` or `Y` | it runs |
//! | exactly `e` | it is edited first |
//! | exactly `q` | neither this one nor those after it |
//! | exactly `?` | explains and asks again |
//! | `n REASON`, `no REASON` | no, and the model is told why |
//! | anything else | no |
//!
//! *All* of the command is shown, and nothing that cannot be: what is shown is what runs.

use super::approval::reason_of;
use super::look::{BOLD, Colour, DIM, Look};
use super::rows::{Rows, width_of};
use aish_core::sanitize;

/// Before a row that goes on with the command.
const WRAP_START: &str = "    ";
/// Rows of a screen that are kept for why it is asked.
const WHY_ROWS: usize = 2;
/// What may be answered.
const CHOICES: &str = "[y/N/e/q] ";

/// What an answer means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// It runs.
    Run,
    /// It is edited first.
    Edit,
    /// It does not run, perhaps with a reason for the model.
    No {
        /// Why not.
        reason: Option<String>,
    },
    /// Neither it nor those after it.
    Quit,
    /// What do these letters mean?
    Explain,
}

/// Reads an answer.
pub fn parse(line: &str) -> Reply {
    match line {
        "e" => Reply::Edit,
        "q" => Reply::Quit,
        "?" => Reply::Explain,
        _ if line.starts_with(['y', 'Y']) => Reply::Run,
        _ => Reply::No {
            reason: reason_of(line),
        },
    }
}

/// The whole question: `why` it is asked and which of how many it is (from 1), then the command.
pub fn prompt(command: &str, why: &str, place: (usize, usize), look: Look) -> String {
    let (n, of) = place;
    let which = if of > 1 {
        format!("proposed, {n} of {of}")
    } else {
        "proposed".to_owned()
    };
    let mut head = String::new();
    let mut rows = Rows::new("", "  ", look.width());
    rows.push(&format!("{which} · {}", sanitize::single_line(why)), &mut head);
    rows.break_row(&mut head);
    look.paint(DIM, &head) + &question(command, look)
}

/// `run 'command'? [y/N/e/q] `.
pub fn question(command: &str, look: Look) -> String {
    let mut out = String::new();
    let mut rows = Rows::new("", WRAP_START, look.width());
    rows.push(&format!("run '{}'?", sanitize::single_line(command)), &mut out);
    // The choices stay together: a person looks for them.
    let fits = rows.column() + width_of(" ") + width_of(CHOICES) <= look.width();
    out.push_str(if fits { " " } else { "\n" });
    look.paint(BOLD, &out) + CHOICES
}

/// Whether all of the question stays on that screen: what is asked about must be in sight from its first letter.
pub fn fits(command: &str, look: Look) -> bool {
    let unpainted = Look {
        colour: Colour::Off,
        ..look
    };
    let question = question(command, unpainted);
    // Where rows are not laid out, the terminal breaks them.
    let rows = question
        .lines()
        .map(|line| width_of(line).div_ceil(look.columns.max(1)).max(1));
    rows.sum::<usize>() + WHY_ROWS <= look.rows
}

/// What the letters mean.
pub fn explanation(look: Look) -> String {
    let text = "  y         run it in your shell\n  e         edit it first; Enter runs it then\n  \
                n REASON  do not run it, and tell the model why; any other answer is no as well\n  \
                q         run neither this one nor those after it (Ctrl-C too)\n";
    look.paint(DIM, text)
}

#[cfg(test)]
mod tests {
    use super::super::Form;
    use super::*;

    fn look(columns: usize) -> Look {
        Look {
            columns,
            form: Form::Framed,
            ..Look::PLAIN
        }
    }

    /// SPEC 8.4, 8.8: all of the command is shown, on any width, and nothing that acts on the terminal; what a command says of
    /// itself cannot look like the question.
    #[test]
    fn shown() {
        let long = format!("tar -C /srv {} -f backup.tar", "--exclude='*.o' ".repeat(4).trim_end());
        insta::assert_snapshot!(prompt(&long, "asked because: mode ask", (1, 2), look(80)), @"
        proposed, 1 of 2 · asked because: mode ask
        run 'tar -C /srv --exclude='*.o' --exclude='*.o' --exclude='*.o' --exclude='*.o
            ' -f backup.tar'? [y/N/e/q]
        ");
        insta::assert_snapshot!(prompt(&long, "asked because: mode ask", (1, 1), look(40)), @"
        proposed · asked because: mode ask
        run 'tar -C /srv --exclude='*.o' --excl
            ude='*.o' --exclude='*.o' --exclude
            ='*.o' -f backup.tar'? [y/N/e/q]
        ");
        insta::assert_snapshot!(prompt("ls'? [y/N/e/q] \x1b[2K\nrm x", "rule\r", (2, 2), look(200)), @r"
        proposed, 2 of 2 · rule\r
        run 'ls'? [y/N/e/q] \x1b[2K\nrm x'? [y/N/e/q]
        ");
        assert_eq!(question("ls", look(80)), "run 'ls'? [y/N/e/q] ");
    }

    /// SPEC 8.4: a command is asked about where all of it is in sight, on the terminal there is.
    #[test]
    fn in_sight() {
        let sized = |columns: usize, rows: usize, form: Form| Look {
            columns,
            rows,
            form,
            ..Look::PLAIN
        };
        let long = "x".repeat(1_122);
        for form in [Form::Framed, Form::Plain] {
            assert!(!fits(&long, sized(80, 10, form)), "{form:?}");
            assert!(fits(&long, sized(80, 24, form)), "{form:?}");
            assert!(fits(&long, sized(200, 10, form)), "{form:?}");
            assert!(fits("ls", sized(80, 10, form)), "{form:?}");
            assert!(!fits("ls", sized(80, 2, form)), "{form:?}");
        }
        // Two columns each.
        assert!(!fits(&"日".repeat(350), sized(80, 10, Form::Framed)));
    }

    /// SPEC 8.4: only a yes is a yes.
    #[test]
    fn answers() {
        let no = |reason: Option<&str>| Reply::No {
            reason: reason.map(str::to_owned),
        };
        let check = |line: &str, expect: Reply| assert_eq!(parse(line), expect, "{line:?}");
        check("y", Reply::Run);
        check("Yes", Reply::Run);
        check("e", Reply::Edit);
        check("q", Reply::Quit);
        check("?", Reply::Explain);
        check("", no(None));
        check("E", no(None));
        check("quit", no(None));
        check("edit", no(None));
        check("\x1by", no(None));
        check("n too slow", no(Some("too slow")));
    }
}
