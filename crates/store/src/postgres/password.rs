//! The password of an address that has none, from where PostgreSQL's own programs take it: the variable `PGPASSWORD`, else a line of
//! the file that `PGPASSFILE` names, `~/.pgpass` by default.
//!
//! A line is `host:port:database:user:password`; a field may be `*` for any, and a backslash takes the next character as it is. The
//! first line that fits counts.

use super::address::PostgresUrl;
use crate::StoreError;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

/// Who may read the file besides its owner: nobody.
const OTHERS_MODE_MASK: u32 = 0o077;

impl PostgresUrl {
    /// Adds the password that the variables of the environment lead to, unless the address has one.
    ///
    /// # Errors
    /// [`StoreError::Format`] if the file of passwords is open to others, [`StoreError::Io`] if it cannot be read.
    pub fn with_environment(mut self, variable: impl Fn(&str) -> Option<String>) -> Result<Self, StoreError> {
        let set = |name: &str| variable(name).filter(|value| !value.is_empty());
        if self.config.get_password().is_some() {
            return Ok(self);
        }
        let password = match set("PGPASSWORD") {
            Some(password) => Some(password),
            None => {
                let file = set("PGPASSFILE").map(PathBuf::from);
                let file = file.or_else(|| Some(PathBuf::from(set("HOME")?).join(".pgpass")));
                file.map_or(Ok(None), |file| self.password_in(&file))?
            }
        };
        if let Some(password) = password {
            self.config.password(password);
        }
        Ok(self)
    }

    /// What the file says for this address; nothing if there is no file.
    fn password_in(&self, file: &PathBuf) -> Result<Option<String>, StoreError> {
        let failed = |error| StoreError::Io {
            attempt: format!("reading the passwords in {}", file.display()),
            source: Box::new(error),
        };
        let metadata = match fs::metadata(file) {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(error)),
        };
        if metadata.permissions().mode() & OTHERS_MODE_MASK != 0 {
            return Err(StoreError::Format(format!(
                "the passwords in {0} can be read by others: `chmod 600 {0}`",
                file.display()
            )));
        }
        let text = fs::read_to_string(file).map_err(failed)?;
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        Ok(lines.map(fields).find_map(|line| self.password_of(line)))
    }

    fn password_of(&self, line: Vec<String>) -> Option<String> {
        let [host, port, database, user, password] = <[String; 5]>::try_from(line).ok()?;
        let (ours, our_port) = self.first_host();
        let fits = |field: &str, ours: &str| field == "*" || field == ours;
        let our_user = self.config.get_user().unwrap_or_default();
        let our_database = self.config.get_dbname().unwrap_or(our_user);
        let is_ours = fits(&host, &ours)
            && fits(&port, &our_port.to_string())
            && fits(&database, our_database)
            && fits(&user, our_user);
        is_ours.then_some(password)
    }
}

/// The fields of a line, of which the fifth holds all that is left.
fn fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut chars = line.chars();
    while let Some(char) = chars.next() {
        let is_end = char == ':' && fields.len() < 5;
        let char = if char == '\\' { chars.next() } else { Some(char) };
        if is_end {
            fields.push(String::new());
        } else if let (Some(field), Some(char)) = (fields.last_mut(), char) {
            field.push(char);
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    fn password(address: &str, variables: &[(&str, &str)]) -> Result<Option<String>, String> {
        let variable = |name: &str| {
            let set = variables.iter().find(|(known, _)| *known == name);
            set.map(|(_, value)| (*value).to_owned())
        };
        let url = PostgresUrl::parse(address).unwrap();
        let url = url.with_environment(variable).map_err(|error| error.to_string())?;
        let password = url.config.get_password();
        Ok(password.map(|password| String::from_utf8(password.to_vec()).unwrap()))
    }

    /// SPEC 9.8, 10.5: a password need not stand on the command line: it comes from where other PostgreSQL programs take it.
    #[test]
    fn from_the_environment() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join(".pgpass");
        let home = directory.path().display().to_string();
        let at_home = [("HOME", home.as_str())];
        assert_eq!(password("postgres://ann@db/x", &at_home), Ok(None));
        assert_eq!(
            password("postgres://ann:a@db/x", &[("PGPASSWORD", "b")])
                .unwrap()
                .unwrap(),
            "a"
        );
        assert_eq!(
            password("postgres://ann@db/x", &[("PGPASSWORD", "b")])
                .unwrap()
                .unwrap(),
            "b"
        );

        let lines = "# a remark\n\nother:*:*:*:1\ndb:5433:*:*:2\n*:*:x:ann:3:4\\:5\n*:*:*:*:6";
        fs::write(&file, lines).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        let told = password("postgres://ann@db/x", &at_home).unwrap_err();
        assert!(told.contains("chmod 600"), "{told}");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        let named = file.display().to_string();
        for (address, expect) in [
            ("postgres://ann@db/x", "3:4:5"),
            ("postgres://ann@db:5433/x", "2"),
            ("postgres://bob@db/x", "6"),
            ("postgres://ann@other/x", "1"),
        ] {
            assert_eq!(password(address, &at_home).unwrap().unwrap(), expect, "{address}");
            let named = [("PGPASSFILE", named.as_str()), ("HOME", "/nonexistent")];
            assert_eq!(password(address, &named).unwrap().unwrap(), expect, "{address}");
        }
    }
}
