//! Lines for the shell: `!command` runs through the engine, which records it; a bare `cd` moves the session.
//!
//! The command runs as the `bash` tool runs one, without the gate: the person typed it. It has no terminal of its own.

use super::route::cd_target;
use super::{Repl, ReplError};
use aish_core::sanitize;
use std::path::PathBuf;

impl Repl {
    pub(super) async fn run_shell(&mut self, command: &str) -> Result<(), ReplError> {
        let directory = self.engine.settings().context.directory;
        let home = self.options.environment.path("HOME");
        if let Some(target) = cd_target(command, &directory, home, self.previous_directory.as_deref()) {
            return self.change_directory(target).await;
        }
        self.front
            .draw(|renderer, out| renderer.command_begun(command, out))
            .await;
        let driver = &mut self.driver;
        let ran = self
            .front
            .watch(|notices, cancel| async move { driver.run_command(command, &notices, cancel).await })
            .await;
        match ran {
            Ok(ran) => self.front.draw(|renderer, out| renderer.command_ended(&ran, out)).await,
            Err(error) => self.front.say(&error.to_string()).await,
        }
        Ok(())
    }

    async fn change_directory(&mut self, target: PathBuf) -> Result<(), ReplError> {
        let moved = std::fs::canonicalize(&target).and_then(|path| {
            // Only a directory that may be listed or passed through is one to work in.
            std::fs::metadata(path.join("."))?;
            Ok(path)
        });
        match moved {
            Ok(path) => {
                let before = self.engine.settings().context.directory;
                self.engine.update(|settings| settings.context.directory = path);
                self.previous_directory = Some(before);
            }
            Err(error) => {
                let shown = target.display().to_string();
                self.front
                    .say(&format!("cd {}: {error}", sanitize::single_line(&shown)))
                    .await;
            }
        }
        Ok(())
    }
}
