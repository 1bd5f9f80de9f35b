//! What the shell has exported, as the commands of a model are given it (SPEC 4.4): all but what is ours, and the keys.

use std::path::{Path, PathBuf};

/// Begins the names of what is ours: variables of the program, and what its hooks put into a shell.
const OWN: [&str; 3] = ["AISH_", "__aish_", "BASH_FUNC___aish_"];
/// Ends the names of keys of model providers.
const KEY_END: &str = "_API_KEY";
/// Says something of the command that printed it, and nothing of the shell.
const LAST_ARGUMENT: &str = "_";
/// Where the program that prints all variables may be: no alias or function of the user's stands in its way.
const PRINTERS: [&str; 2] = ["/usr/bin/env", "/bin/env"];

/// The variables that no command of a model's is given.
#[derive(Clone, Debug, Default)]
pub struct Withheld {
    keys: Vec<String>,
}

impl Withheld {
    /// With the keys of models and servers, by their names.
    pub fn new<'a>(keys: impl IntoIterator<Item = &'a str>) -> Self {
        Self {
            keys: keys.into_iter().map(str::to_owned).collect(),
        }
    }

    /// Whether that one is.
    pub fn covers(&self, name: &str) -> bool {
        OWN.iter().any(|own| name.starts_with(own)) || self.is_key(name)
    }

    /// Whether it holds a key.
    pub fn is_key(&self, name: &str) -> bool {
        name.ends_with(KEY_END) || self.keys.iter().any(|key| key == name)
    }
}

/// Variables of a shell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exported {
    /// Those that are passed on.
    pub lent: Vec<(String, String)>,
    /// Those that hold keys.
    pub keys: Vec<(String, String)>,
}

/// What the shell is asked; `None` where the system has no way to tell.
pub fn question() -> Option<String> {
    let printer = PRINTERS.iter().map(Path::new).find(|path| path.is_file())?;
    Some(format!("{} -0", PathBuf::from(printer).display()))
}

/// What it answered: `NAME=VALUE`, each ended by a zero. What is not UTF-8 cannot be passed on.
pub fn read(answer: &[u8], withheld: &Withheld) -> Exported {
    let mut exported = Exported::default();
    for variable in answer.split(|byte| *byte == 0) {
        let Some((name, value)) = std::str::from_utf8(variable).ok().and_then(|text| text.split_once('=')) else {
            continue;
        };
        let pair = (name.to_owned(), value.to_owned());
        if withheld.is_key(name) {
            exported.keys.push(pair);
        } else if !withheld.covers(name) && name != LAST_ARGUMENT && !name.is_empty() {
            exported.lent.push(pair);
        }
    }
    exported
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SPEC 4.4, 10.5: what is exported is passed on; what is ours, and what holds a key, is not.
    #[test]
    fn what_is_passed_on() {
        let withheld = Withheld::new(["BOLTZMANN_MCP_TOKEN"]);
        let answer = b"PATH=/bin\0_=/usr/bin/env\0COLOUR=blue=green\0AISH_HOME=/x\0__aish_key=k\0LINES=a\nb\0\
            OTHER_API_KEY=secret\0BOLTZMANN_MCP_TOKEN=token\0BAD=\xff\0BASH_FUNC___aish_keep%%=() { :; }\0junk\0=x\0";
        let pairs = |pairs: &[(&str, &str)]| -> Vec<(String, String)> {
            pairs
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect()
        };
        let exported = read(answer, &withheld);
        assert_eq!(
            exported.lent,
            pairs(&[("PATH", "/bin"), ("COLOUR", "blue=green"), ("LINES", "a\nb")])
        );
        assert_eq!(
            exported.keys,
            pairs(&[("OTHER_API_KEY", "secret"), ("BOLTZMANN_MCP_TOKEN", "token")])
        );
        assert_eq!(read(b"", &withheld), Exported::default());
    }
}
