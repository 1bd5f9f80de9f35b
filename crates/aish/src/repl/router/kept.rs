//! The routes that were flipped before, kept from session to session: `routes.tsv` in the data directory.
//!
//! A line of the file is `shell` or `model`, a tab, and the line that was sent there. Several shells share it: each writes what it
//! learnt beside what the others wrote meanwhile, and puts the file in place whole. What cannot be read is left out and said.

use crate::paths::{lock_dir_of, write_private};
use aish_shell::route::{CORRECTED_LINE_BYTES_MAX, CORRECTIONS_MAX, Corrections, Sent};
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

/// The file's name.
const FILE_NAME: &str = "routes.tsv";
/// The words of the file.
const SHELL: &str = "shell";
const MODEL: &str = "model";
/// The largest file that is read: as large as what is kept may be.
const FILE_BYTES_MAX: usize = CORRECTIONS_MAX * (CORRECTED_LINE_BYTES_MAX + MODEL.len() + 2);

/// Where it is, below the data directory.
pub fn path(data_dir: &Path) -> PathBuf {
    data_dir.join(FILE_NAME)
}

/// Reads it, and says what was wrong with it. A missing one is empty.
pub fn load(path: &Path) -> (Corrections, Option<String>) {
    let told = |problem: &dyn std::fmt::Display| {
        format!(
            "what you said of lines before is not known: {}: {problem}",
            path.display()
        )
    };
    let text = match read(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return (Corrections::default(), None),
        Err(error) => return (Corrections::default(), Some(told(&error))),
    };
    let rows: Vec<_> = text.lines().map(row).collect();
    let wrong = rows.iter().filter(|row| row.is_none()).count();
    let remark = (wrong > 0).then(|| {
        let lines = if wrong == 1 { "line" } else { "lines" };
        format!(
            "{}: {wrong} {lines} left out that say neither shell nor model",
            path.display()
        )
    });
    (rows.into_iter().flatten().collect(), remark)
}

/// Adds one to the file, as it is now.
///
/// # Errors
/// The system's; the file is then as it was.
pub fn add(path: &Path, line: &str, sent: Sent) -> io::Result<()> {
    let _lock = lock_dir_of(path)?;
    let (mut corrections, _) = load(path);
    corrections.learn(line, sent);
    let text: String = corrections
        .iter()
        .map(|(line, sent)| format!("{}\t{line}\n", word(sent)))
        .collect();
    write_private(path, text.as_bytes())
}

fn word(sent: Sent) -> &'static str {
    match sent {
        Sent::Shell => SHELL,
        Sent::Model => MODEL,
    }
}

fn row(row: &str) -> Option<(&str, Sent)> {
    let (word, line) = row.split_once('\t')?;
    match word {
        SHELL => Some((line, Sent::Shell)),
        MODEL => Some((line, Sent::Model)),
        _ => None,
    }
}

fn read(path: &Path) -> io::Result<String> {
    let mut bytes = Vec::new();
    let limit = u64::try_from(FILE_BYTES_MAX).unwrap_or(u64::MAX);
    File::open(path)?.take(limit + 1).read_to_end(&mut bytes)?;
    if bytes.len() > FILE_BYTES_MAX {
        let text = format!("it has more than {FILE_BYTES_MAX} bytes");
        return Err(io::Error::new(io::ErrorKind::InvalidData, text));
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    fn lines(path: &Path) -> (Vec<(String, Sent)>, Option<String>) {
        let (corrections, remark) = load(path);
        let lines = corrections.iter().map(|(line, sent)| (line.to_owned(), sent));
        (lines.collect(), remark)
    }

    /// SPEC 8.1: corrections are kept, each beside the others; SPEC 10.5: readable by their user only.
    #[test]
    fn kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = path(&folder.path().join("data"));
        assert_eq!(lines(&path), (vec![], None));
        add(&path, "kill  chrome", Sent::Shell).unwrap();
        add(&path, "ls\nwhat is\tthat", Sent::Model).unwrap();
        add(&path, "kill chrome", Sent::Model).unwrap();
        let expected = vec![
            ("ls what is that".to_owned(), Sent::Model),
            ("kill chrome".to_owned(), Sent::Model),
        ];
        assert_eq!(lines(&path), (expected, None));
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }

    /// A broken file is said in one line, and what can be read of it holds; the next correction mends it.
    #[test]
    fn broken() {
        let folder = tempfile::tempdir().unwrap();
        let path = path(folder.path());
        std::fs::write(&path, b"shell\tmake it so\n\xff\xfe\nwhatever\nmodel\tls\n").unwrap();
        let (found, remark) = lines(&path);
        assert_eq!(found.len(), 2);
        assert!(remark.unwrap().contains("2 lines left out"));
        add(&path, "ls", Sent::Shell).unwrap();
        assert_eq!(lines(&path).1, None);
        std::fs::write(&path, vec![b'x'; FILE_BYTES_MAX + 1]).unwrap();
        assert!(lines(&path).1.unwrap().contains("more than"));
        std::fs::remove_file(&path).unwrap();
        std::fs::create_dir(&path).unwrap();
        assert!(lines(&path).1.is_some());
        assert!(add(&path, "ls", Sent::Shell).is_err());
    }
}
