//! Whether the person's shell may read a line otherwise than its syntax says (SPEC 5.7): lines are taken apart by bash's grammar, and
//! an alias or a function makes another command of a word. Such a line is asked about, whatever rules allow its parts.

use aish_command::simple_commands;
use aish_shell::Dialect;
use aish_shell::route::{Kind, Known};

/// What means the same in every shell, beside letters, digits and what is in quotes.
const SAME_EVERYWHERE: &str = " _-./:,@+;|&";

/// Whether all is known that the shell has been told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// It is.
    All,
    /// It may have other aliases and functions by now.
    Before,
}

/// Why the shell may read a line otherwise, one line.
pub fn doubt(line: &str, known: &dyn Known, told: Told) -> Option<String> {
    let other = match known.dialect() {
        Some(Dialect::Bash) => None,
        Some(Dialect::Zsh) => Some("zsh"),
        Some(Dialect::Fish) => Some("fish"),
        None => Some("your shell"),
    };
    if let Some(shell) = other.filter(|_| !is_plain(line)) {
        return Some(format!("{shell} may read it otherwise than bash"));
    }
    if told == Told::Before {
        return Some("your shell has not said which aliases it has".to_owned());
    }
    let parts = simple_commands(line);
    for command in &parts.commands {
        // An alias may stand for any word in zsh, and behind another in bash.
        let alias = command
            .words
            .iter()
            .find(|word| known.kind(&word.text) == Some(Kind::Alias));
        if let Some(word) = alias {
            return Some(format!("{} is an alias of your shell", word.text));
        }
        let name = command.name().filter(|name| known.kind(name) == Some(Kind::Function));
        if let Some(name) = name {
            return Some(format!("{name} is a function of your shell"));
        }
    }
    None
}

/// Whether nothing in a line is written that shells read in different ways.
fn is_plain(line: &str) -> bool {
    let mut quoted_by = None;
    for c in line.chars() {
        match (quoted_by, c) {
            (None, '\'' | '"') => quoted_by = Some(c),
            (Some(quote), _) if c == quote => quoted_by = None,
            // In fish a backslash takes the meaning from a quote, in single ones too.
            (Some(_), '\\' | '!') | (Some('"'), '$' | '`') => return false,
            (Some(_), _) => {}
            (None, _) if c.is_ascii_alphanumeric() || SAME_EVERYWHERE.contains(c) => {}
            (None, _) => return false,
        }
    }
    quoted_by.is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A shell of that language that has an alias and a function.
    struct Shell(Option<Dialect>);

    impl Known for Shell {
        fn dialect(&self) -> Option<Dialect> {
            self.0
        }

        fn kind(&self, word: &str) -> Option<Kind> {
            match word {
                "ll" => Some(Kind::Alias),
                "mkcd" => Some(Kind::Function),
                _ => Some(Kind::Program),
            }
        }

        fn is_path(&self, _: &str) -> bool {
            false
        }

        fn near(&self, _: &str) -> Option<String> {
            None
        }
    }

    /// SPEC 5.7: what a shell makes another command of, or reads in a way of its own, is in doubt.
    #[test]
    fn what_is_in_doubt() {
        use Dialect::{Bash, Fish, Zsh};
        let doubt = |line, dialect| doubt(line, &Shell(Some(dialect)), Told::All).is_some();
        for dialect in [Bash, Zsh, Fish] {
            for plain in ["ls -l | wc", "git commit -m 'a b (c)' && make", "cd /x; echo \"a b\""] {
                assert!(!doubt(plain, dialect), "{plain} in {dialect:?}");
            }
            for other in ["ll", "true; ll", "sudo ll", "mkcd x", "timeout 5 mkcd x"] {
                assert!(doubt(other, dialect), "{other} in {dialect:?}");
            }
        }
        for other in [
            "echo 'x\\'' ; rm y #'",
            "ls *(e:x:)",
            "ls =rm",
            "echo (rm x)",
            "ls {a,b}",
            "ls > x",
            "echo $x",
            "echo \"$(x)\"",
            "echo 'a",
            "ls % ^ ~",
        ] {
            assert!(doubt(other, Zsh) && doubt(other, Fish), "{other}");
        }
        assert!(!doubt("echo $x > y", Bash));
        assert!(super::doubt("ls", &Shell(Some(Bash)), Told::Before).is_some());
        assert!(super::doubt("ls $x", &Shell(None), Told::All).is_some());
    }
}
