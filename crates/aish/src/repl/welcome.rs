//! What a person reads first: five lines where they have never been here, one where they have.

use aish_core::sanitize;

/// Who is there, and whether the person knows the place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Welcome {
    /// Who listens.
    pub listening: Listening,
    /// Whether they were here before.
    pub visit: Visit,
}

/// Who listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Listening {
    /// The model of this name.
    Model(String),
    /// That is being found out.
    Unknown,
    /// Nobody; why, and what to do about it, line by line.
    Nobody(Vec<String>),
}

/// Whether somebody was here before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Visit {
    /// Never: there is no ledger yet.
    First,
    /// They were.
    Again,
}

/// Whether lines can be commands without a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unmarked {
    /// They go where they are guessed to belong.
    Guessed,
    /// They are questions.
    Questions,
}

const FIRST_GUESSED: &str = "\
Commands run in your shell, questions go to the model; the prompt shows which.
Ctrl-T flips that. Alt-W asks why a command failed: the model saw its output.
The model asks before it changes anything; :policy says when it need not.
:help is one screen; Ctrl-D leaves.
";
const FIRST_QUESTIONS: &str = "\
Ask anything. !command runs in a shell, and your next question has its output.
The model asks before it changes anything; :policy says when it need not.
:help is one screen; Ctrl-D leaves.
";

impl Welcome {
    /// Lines of our own, each ending in a line feed; what is not ours is escaped.
    pub fn text(&self, lines: Unmarked) -> String {
        let listening = match &self.listening {
            Listening::Model(model) => format!("{} is listening.", sanitize::single_line(model)),
            Listening::Unknown => "Looking for a model to talk to.".to_owned(),
            Listening::Nobody(why) => {
                let why = why.iter().map(|line| format!("  {}\n", sanitize::single_line(line)));
                let why: String = why.collect();
                return format!("No model to talk to yet; everything else works.\n{why}");
            }
        };
        match (self.visit, lines) {
            (Visit::First, Unmarked::Guessed) => {
                format!("aish: your shell, and a model at one prompt. {listening}\n{FIRST_GUESSED}")
            }
            (Visit::First, Unmarked::Questions) => format!("{listening}\n{FIRST_QUESTIONS}"),
            (Visit::Again, Unmarked::Guessed) => format!("{listening} :help shows what can be typed.\n"),
            (Visit::Again, Unmarked::Questions) => {
                format!("{listening} Ask anything; !command runs a command; :help says the rest.\n")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::term::columns::wrapped;

    fn text(listening: &Listening, visit: Visit, columns: usize) -> String {
        let welcome = Welcome {
            listening: listening.clone(),
            visit,
        };
        wrapped(&welcome.text(Unmarked::Guessed), columns)
    }

    /// Five lines for somebody who has just arrived, one for everybody else, and never a word cut in two.
    #[test]
    fn welcomes() {
        let model = Listening::Model("desk".into());
        insta::assert_snapshot!(text(&model, Visit::First, 79), @"
        aish: your shell, and a model at one prompt. desk is listening.
        Commands run in your shell, questions go to the model; the prompt shows which.
        Ctrl-T flips that. Alt-W asks why a command failed: the model saw its output.
        The model asks before it changes anything; :policy says when it need not.
        :help is one screen; Ctrl-D leaves.
        ");
        insta::assert_snapshot!(text(&model, Visit::First, 39), @"
        aish: your shell, and a model at one
        prompt. desk is listening.
        Commands run in your shell, questions
        go to the model; the prompt shows
        which.
        Ctrl-T flips that. Alt-W asks why a
        command failed: the model saw its
        output.
        The model asks before it changes
        anything; :policy says when it need
        not.
        :help is one screen; Ctrl-D leaves.
        ");
        assert_eq!(
            text(&model, Visit::Again, 79),
            "desk is listening. :help shows what can be typed.\n"
        );
        assert_eq!(text(&Listening::Unknown, Visit::Again, 79).lines().count(), 1);
        let nobody = Listening::Nobody(vec!["there is none".into(), "start a server \u{1b}[2J".into()]);
        insta::assert_snapshot!(text(&nobody, Visit::First, 39), @r"
        No model to talk to yet; everything
        else works.
          there is none
          start a server \x1b[2J
        ");
    }
}
