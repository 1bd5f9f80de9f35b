//! What a project says to aish: the configuration and the instructions of a directory its user trusts.
//!
//! Whatever is wrong with a project is its own matter: it becomes a remark, and aish goes on without it. Nothing that lies in
//! a directory can keep the program from running there (SPEC 12).

use crate::config::{Source, read_text};
use crate::trust::{AGENTS_FILE, Trust, TrustStore};
use aish_core::policy::is_secret_path;
use aish_core::sanitize;
use std::io;
use std::path::Path;

/// Bytes of the instructions that are read: more would leave a small model no room to answer.
const AGENTS_BYTES_MAX: usize = 32 * 1024;

/// What was read of a project.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Project {
    /// Its configuration, if it has one.
    pub config: Option<Source>,
    /// Its instructions for the model; empty for none.
    pub instructions: String,
    /// What a person should know, one line each.
    pub remarks: Vec<String>,
}

impl Project {
    /// What the project in this directory (absolute, links resolved) says if it is trusted; of one that is not, only that it
    /// was not read.
    pub fn read(trust: &TrustStore, dir: &Path) -> Self {
        let mut project = Self::default();
        let shown = sanitize::single_line(&dir.to_string_lossy()).into_owned();
        let checked = match trust.check(dir) {
            Ok(checked) => checked,
            Err(error) => {
                project.remarks.push(format!("{shown} was not read: {error}"));
                return project;
            }
        };
        match checked.trust {
            Trust::Trusted => {
                project.config = checked.config;
                project.read_instructions(dir);
            }
            Trust::Nothing => {}
            Trust::Unknown => project.remarks.push(format!(
                "{shown} has instructions for aish that were not read; `aish trust` trusts it"
            )),
            Trust::Changed => project.remarks.push(format!(
                "{shown}: its configuration changed and was not read; `aish trust` trusts it again"
            )),
        }
        project
    }

    fn read_instructions(&mut self, dir: &Path) {
        let file = dir.join(AGENTS_FILE);
        let mut remark = |what: String| self.remarks.push(format!("{} {what}", file.display()));
        match instructions(dir, &file) {
            Ok(mut text) => {
                if text.len() > AGENTS_BYTES_MAX {
                    remark(format!("is cut after {AGENTS_BYTES_MAX} bytes"));
                    text.truncate(text.floor_char_boundary(AGENTS_BYTES_MAX));
                }
                self.instructions = text;
            }
            // Trusted and not there: there is just nothing to say.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => remark(format!("was not read: {error}")),
        }
    }
}

/// The text of the file. It goes to a model, so a link must not lend it a file that the project does not hold: trust was given
/// to the directory, not to what its files point at.
fn instructions(dir: &Path, file: &Path) -> io::Result<String> {
    let refused = |why: &str| Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
    let real = file.canonicalize()?;
    if !real.starts_with(dir) {
        return refused("it leads out of the project");
    }
    if is_secret_path(&real) {
        return refused("it leads to a file that looks secret");
    }
    read_text(&real)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::trust::PROJECT_DIR;
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::PathBuf;

    struct Scene {
        _root: tempfile::TempDir,
        dir: PathBuf,
        trust: TrustStore,
    }

    /// A trusted project, before anything was put in the place of its instructions.
    fn trusted() -> Scene {
        let root = tempfile::tempdir().unwrap();
        let dir = root.path().canonicalize().unwrap().join("project");
        fs::create_dir_all(dir.join(PROJECT_DIR)).unwrap();
        fs::write(dir.join(AGENTS_FILE), "Be brief.").unwrap();
        let trust = TrustStore::new(root.path().join("data/trusted.toml"));
        trust.trust(&dir).unwrap();
        Scene {
            _root: root,
            dir,
            trust,
        }
    }

    impl Scene {
        /// What is read once something else was made of the instructions.
        fn with(&self, make: impl FnOnce(&Path)) -> Project {
            let file = self.dir.join(AGENTS_FILE);
            fs::remove_file(&file).unwrap();
            make(&file);
            Project::read(&self.trust, &self.dir)
        }
    }

    fn assert_refused(project: &Project, why: &str) {
        assert_eq!(project.instructions, "");
        assert!(
            project.remarks.len() == 1 && project.remarks[0].contains("AGENTS.md was not read: "),
            "{project:?}"
        );
        assert!(project.remarks[0].ends_with(why), "{project:?}");
    }

    /// SPEC 7.8: a trusted project's instructions are read; a link to another of its files is as good as the file.
    #[test]
    fn instructions_are_read() {
        let scene = trusted();
        let project = Project::read(&scene.trust, &scene.dir);
        assert_eq!(project.instructions, "Be brief.");
        assert_eq!(project.remarks, [""; 0]);
        fs::write(scene.dir.join("README.md"), "Be kind.").unwrap();
        let project = scene.with(|file| symlink("README.md", file).unwrap());
        assert_eq!(project.instructions, "Be kind.");
    }

    /// SPEC 12: no link of a trusted project brings a file from elsewhere, or a secret one, before a model.
    #[test]
    fn links_out_of_the_project_are_refused() {
        let scene = trusted();
        let secret = scene.dir.parent().unwrap().join("id_rsa");
        fs::write(&secret, "PRIVATE").unwrap();
        assert_refused(
            &scene.with(|file| symlink(&secret, file).unwrap()),
            "it leads out of the project",
        );
        fs::write(scene.dir.join(".env"), "KEY=1").unwrap();
        assert_refused(
            &scene.with(|file| symlink(".env", file).unwrap()),
            "it leads to a file that looks secret",
        );
    }

    /// SPEC 12: a pipe in place of the instructions is not waited for.
    #[test]
    fn a_pipe_is_refused() {
        let scene = trusted();
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        let project = scene.with(|file| rustix::fs::mkfifoat(rustix::fs::CWD, file, mode).unwrap());
        // To the list, what is no file is no instructions: there is nothing left to trust or to speak of.
        assert_eq!(project, Project::default());
        fs::write(scene.dir.join(PROJECT_DIR).join("config.toml"), "").unwrap();
        scene.trust.trust(&scene.dir).unwrap();
        assert_refused(&Project::read(&scene.trust, &scene.dir), "it is not a regular file");
    }

    /// SPEC 12: long instructions are cut between two characters, and said to be.
    #[test]
    fn long_instructions_are_cut() {
        let scene = trusted();
        let project = scene.with(|file| fs::write(file, "é".repeat(AGENTS_BYTES_MAX)).unwrap());
        assert_eq!(project.instructions.len(), AGENTS_BYTES_MAX);
        assert!(project.remarks[0].ends_with("is cut after 32768 bytes"), "{project:?}");
    }
}
