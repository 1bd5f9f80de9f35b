//! What tools of servers were when they were approved: `mcp-pins.json` in the data directory (SPEC 6.8).
//!
//! The file maps `alias.tool` to a [`Pinned`]. Several shells share it: each change is made to what it says at that moment, under
//! a lock, and puts it in place whole. A file that cannot be understood pins everything: then each tool asks, until somebody has
//! repaired or removed it. What cannot be written holds for this process.

use super::host::Front;
use crate::paths::{lock_dir_of, write_private};
use aish_core::sanitize;
use aish_mcp::pin::{Pinned, Pins, difference};
use aish_mcp::{Endpoint, Host, StdioEndpoint};
use std::collections::BTreeMap;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The file's name.
pub(super) const PINS_FILE: &str = "mcp-pins.json";
/// The largest file that is read or written: some thousand tools.
const FILE_BYTES_MAX: usize = 16 << 20;

/// The pins of all sessions of a user.
pub(super) struct PinFile {
    path: PathBuf,
    host: Arc<Front>,
    known: Mutex<Known>,
}

/// What was last seen of the file.
struct Known {
    stamp: Option<Stamp>,
    /// What it says, or why it says nothing.
    saved: Result<BTreeMap<String, Pinned>, String>,
    /// What could not be written.
    unsaved: BTreeMap<String, Pinned>,
}

/// Which file it was: one that took its place differs in one of these.
type Stamp = (u64, u64, i64, i64);

impl PinFile {
    /// The pins in that folder. Nothing is read yet. Trouble with the file is told to `host`.
    pub(super) fn in_folder(folder: &Path, host: Arc<Front>) -> Self {
        Self {
            path: folder.join(PINS_FILE),
            host,
            known: Mutex::new(Known {
                stamp: None,
                saved: Ok(BTreeMap::new()),
                unsaved: BTreeMap::new(),
            }),
        }
    }

    /// What is known now, read anew where the file is another.
    fn now(&self) -> MutexGuard<'_, Known> {
        // What is known is exchanged whole.
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let stamp = stamp_of(&self.path);
        if known.stamp != stamp {
            known.saved = read(&self.path);
            known.stamp = stamp;
        }
        known
    }

    /// Writes one more pin beside what others wrote meanwhile.
    fn save(&self, tool: &str, pinned: &Pinned) -> Result<(), String> {
        self.edit(|pins| {
            pins.insert(tool.to_owned(), pinned.clone());
        })
    }

    /// Changes what the file says at this moment.
    fn edit(&self, change: impl FnOnce(&mut BTreeMap<String, Pinned>)) -> Result<(), String> {
        let told = |error: io::Error| format!("cannot write {}: {error}", self.path.display());
        let _lock = lock_dir_of(&self.path).map_err(told)?;
        let mut known = self.now();
        let mut pins = known.saved.clone()?;
        change(&mut pins);
        let text = serde_json::to_vec(&pins).map_err(|error| told(error.into()))?;
        if text.len() > FILE_BYTES_MAX {
            return Err(format!(
                "{} would be larger than {FILE_BYTES_MAX} bytes",
                self.path.display()
            ));
        }
        write_private(&self.path, &text).map_err(told)?;
        known.stamp = stamp_of(&self.path);
        known.saved = Ok(pins);
        Ok(())
    }
}

impl Pins for PinFile {
    fn changed(&self, tool: &str, now: &Pinned) -> Option<String> {
        let known = self.now();
        let old = match (known.unsaved.get(tool), &known.saved) {
            (Some(old), _) => old,
            (None, Ok(saved)) => saved.get(tool)?,
            (None, Err(problem)) => return Some(format!("what it was when it was approved is not known: {problem}")),
        };
        if old == now {
            return None;
        }
        Some(difference(old, now).join("\n"))
    }

    fn pin(&self, tool: &str, now: &Pinned) {
        {
            let known = self.now();
            let saved = || known.saved.as_ref().ok().and_then(|saved| saved.get(tool));
            if known.unsaved.get(tool).or_else(saved) == Some(now) {
                return;
            }
        }
        let saved = self.save(tool, now);
        let mut known = self.now();
        match saved {
            Ok(()) => {
                known.unsaved.remove(tool);
            }
            Err(problem) => {
                known.unsaved.insert(tool.to_owned(), now.clone());
                drop(known);
                let name = sanitize::single_line(tool);
                self.host.say(&format!(
                    "mcp: {name}: what it is now is remembered for this process only: {}",
                    sanitize::single_line(&problem)
                ));
            }
        }
    }
}

/// Forgets what the tools of a server were; gives of how many it was known.
///
/// # Errors
/// The file is damaged or cannot be written: one line.
pub(super) fn forget(folder: &Path, alias: &str) -> Result<usize, String> {
    let begins = format!("{alias}.");
    let file = PinFile::in_folder(folder, Arc::new(Front::default()));
    let is_its = |tool: &String| tool.starts_with(&begins);
    let known = file.now().saved.clone()?;
    // Where nothing is known there is nothing to write, nor a folder to make.
    let count = known.keys().filter(|tool| is_its(tool)).count();
    if count > 0 {
        file.edit(|pins| pins.retain(|tool, _| !is_its(tool)))?;
    }
    Ok(count)
}

/// A server's endpoint as it counts for a pin: of a child's environment only what was set for it. What every program inherits
/// differs from one terminal to the next, and is no property of the server.
pub(super) fn pinned_endpoint(endpoint: &Endpoint) -> Endpoint {
    match endpoint {
        Endpoint::Http(http) => Endpoint::Http(http.clone()),
        Endpoint::Stdio(program) => Endpoint::Stdio(StdioEndpoint {
            environment: program
                .environment
                .iter()
                .filter(|(name, _)| !super::setup::is_inherited(name))
                .cloned()
                .collect(),
            ..program.clone()
        }),
    }
}

fn stamp_of(path: &Path) -> Option<Stamp> {
    let file = std::fs::metadata(path).ok()?;
    Some((file.ino(), file.len(), file.mtime(), file.mtime_nsec()))
}

fn read(path: &Path) -> Result<BTreeMap<String, Pinned>, String> {
    let damaged = |problem: &str| format!("{} is damaged: {problem}; repair or remove it", path.display());
    let unreadable = |error: io::Error| format!("cannot read {}: {error}", path.display());
    match std::fs::metadata(path) {
        Ok(file) if file.is_file() => {}
        // Opening a pipe would wait for somebody who writes into it.
        Ok(_) => return Err(damaged("it is no file")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
        Err(error) => return Err(unreadable(error)),
    }
    let mut bytes = Vec::new();
    let bytes_max = u64::try_from(FILE_BYTES_MAX).unwrap_or(u64::MAX);
    let file = std::fs::File::open(path).map_err(unreadable)?;
    file.take(bytes_max + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() > FILE_BYTES_MAX {
        return Err(damaged("it is too large"));
    }
    // The parser's own words would quote what the file says.
    serde_json::from_slice(&bytes).map_err(|error| damaged(&format!("line {}", error.line())))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use aish_core::secret::Secret;
    use aish_mcp::{Definition, Hints, HttpEndpoint};
    use serde_json::json;

    fn pinned(description: &str) -> Pinned {
        let definition = Definition {
            name: "send".into(),
            description: description.into(),
            input_schema: json!({"type": "object", "properties": {}}),
            output_schema: None,
            hints: Hints::default(),
        };
        let endpoint = Endpoint::Http(HttpEndpoint {
            url: "https://mail.example/mcp".into(),
            token: None,
            headers: Vec::new(),
        });
        Pinned::of(&definition, &endpoint)
    }

    fn shell(folder: &Path) -> (PinFile, Arc<Mutex<Vec<String>>>) {
        let host = Arc::new(Front::default());
        let lines = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&lines);
        host.listen(Arc::new(move |line| heard.lock().unwrap().push(line.to_owned())));
        (PinFile::in_folder(folder, host), lines)
    }

    /// SPEC 6.8: the first sight is trusted, a change is shown until it is approved, and another shell sees both.
    #[test]
    fn shared_between_shells() {
        let folder = tempfile::tempdir().unwrap();
        let ((one, said), (two, _)) = (shell(folder.path()), shell(folder.path()));
        assert_eq!(one.changed("mail.send", &pinned("a")), None);
        assert!(!folder.path().join(PINS_FILE).exists(), "looking pins nothing");
        one.pin("mail.send", &pinned("a"));
        two.pin("mail.list", &pinned("l"));
        let expect = Some(r#"description: "a" → "b""#.to_owned());
        assert_eq!(two.changed("mail.send", &pinned("b")), expect);
        assert_eq!(one.changed("mail.send", &pinned("b")), expect);
        two.pin("mail.send", &pinned("b"));
        assert_eq!(one.changed("mail.send", &pinned("b")), None);
        assert_eq!(one.changed("mail.list", &pinned("l")), None);
        assert!(
            one.changed("mail.list", &pinned("x")).is_some(),
            "kept beside the other shell's"
        );
        assert!(said.lock().unwrap().is_empty());
    }

    /// SPEC 6.8: a server that is taken out takes its own pins along, and no other's; of a file that cannot be understood none.
    #[test]
    fn forgotten_with_the_server() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(forget(&folder.path().join("none"), "mail"), Ok(0));
        assert!(!folder.path().join("none").exists(), "nothing was made for nothing");
        let (pins, _) = shell(folder.path());
        for tool in ["mail.send", "mail.a.b", "mail-2.send", "mai.l"] {
            pins.pin(tool, &pinned("a"));
        }
        assert_eq!(forget(folder.path(), "mail"), Ok(2));
        assert_eq!(forget(folder.path(), "mail"), Ok(0));
        let left: Vec<String> = pins.now().saved.as_ref().unwrap().keys().cloned().collect();
        assert_eq!(left, ["mai.l", "mail-2.send"]);
        std::fs::write(folder.path().join(PINS_FILE), "{").unwrap();
        assert!(forget(folder.path(), "mail").unwrap_err().contains("is damaged"));
    }

    /// SPEC 6.8: many shells at once lose no pin of each other's.
    #[test]
    fn many_at_once() {
        const SHELLS: usize = 4;
        const TOOLS: usize = 8;
        let folder = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            for n in 0..SHELLS {
                let (pins, _) = shell(folder.path());
                scope.spawn(move || {
                    for tool in 0..TOOLS {
                        pins.pin(&format!("s{n}.t{tool}"), &pinned("a"));
                    }
                });
            }
        });
        let (pins, _) = shell(folder.path());
        assert_eq!(pins.now().saved.as_ref().unwrap().len(), SHELLS * TOOLS);
    }

    /// SPEC 6.8, 12: a file that cannot be understood is no reason to trust; what is approved meanwhile holds for the process,
    /// and the file stays for its owner to look at.
    #[test]
    fn a_damaged_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(PINS_FILE);
        std::fs::write(&path, "{\"mail.send\": 7}").unwrap();
        let (pins, said) = shell(folder.path());
        assert!(pins.changed("mail.send", &pinned("a")).unwrap().contains("is damaged"));
        pins.pin("mail.send", &pinned("a"));
        assert!(said.lock().unwrap().concat().contains("for this process only"));
        assert_eq!(pins.changed("mail.send", &pinned("a")), None);
        assert!(pins.changed("mail.list", &pinned("a")).is_some());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "{\"mail.send\": 7}");
        std::fs::remove_file(&path).unwrap();
        assert_eq!(pins.changed("mail.list", &pinned("a")), None);
        std::fs::create_dir(&path).unwrap();
        assert!(
            pins.changed("mail.list", &pinned("a"))
                .unwrap()
                .contains("it is no file")
        );
    }

    /// SPEC 6.8: what every child inherits is no part of a pin; what was set for it is.
    #[test]
    fn inherited_names() {
        let program = |names: &[&str]| {
            let environment = names.iter().map(|name| ((*name).to_owned(), Secret::new("v")));
            Endpoint::Stdio(StdioEndpoint {
                command: vec!["srv".into()],
                environment: environment.collect(),
                directory: "/".into(),
            })
        };
        let counted = pinned_endpoint(&program(&["PATH", "LC_ALL", "TERM", "TOKEN"]));
        assert_eq!(counted, program(&["TOKEN"]));
    }
}
