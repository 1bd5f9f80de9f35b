//! A temporary folder with files, and calls made in it as the driver makes them: validated, inspected, run.
#![allow(dead_code, clippy::unwrap_used, clippy::panic)]

use aish_core::action::Action;
use aish_tools::set::ToolSet;
use aish_tools::{Cancel, NoProgress, Progress, ToolContext, ToolOutput};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use tokio::sync::watch;

pub struct Place {
    folder: tempfile::TempDir,
    pub tools: ToolSet,
    pub context: ToolContext,
}

impl Place {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let directory = folder.path().canonicalize().unwrap();
        let environment = vec![
            ("PATH".to_owned(), std::env::var("PATH").unwrap()),
            ("HOME".to_owned(), directory.display().to_string()),
        ];
        Self {
            folder,
            tools: ToolSet::builtin(),
            context: ToolContext {
                directory,
                environment: Arc::new(environment),
                output_bytes_max: 1 << 20,
                hidden: aish_tools::Hidden::default(),
                web: aish_tools::WebAccess::default(),
                place: None,
            },
        }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.context.directory.join(name)
    }

    pub fn write(&self, name: &str, contents: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, contents).unwrap();
        path
    }

    pub fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).unwrap()
    }

    pub fn inspect(&self, name: &str, arguments: Value) -> Result<Action, String> {
        let arguments = self.tools.validate(name, &arguments.to_string())?;
        self.tools.get(name).unwrap().inspect(&arguments, &self.context)
    }

    /// Validates, inspects and runs; an error of either of the first two is a failed result.
    pub async fn call(&self, name: &str, arguments: Value) -> ToolOutput {
        let (_keep, cancel) = watch::channel(false);
        self.call_with(name, arguments, &NoProgress, cancel).await
    }

    pub async fn call_with(&self, name: &str, arguments: Value, progress: &dyn Progress, cancel: Cancel) -> ToolOutput {
        let action = match self.inspect(name, arguments) {
            Ok(action) => action,
            Err(message) => return ToolOutput::error(message),
        };
        let tool = self.tools.get(name).unwrap();
        tool.run(&action, &self.context, progress, cancel).await
    }

    /// Runs a call whose action was made earlier, as after a person's answer.
    pub async fn run_approved(&self, action: &Action) -> ToolOutput {
        let (_keep, cancel) = watch::channel(false);
        let tool = self.tools.get(&action.tool).unwrap();
        tool.run(action, &self.context, &NoProgress, cancel).await
    }

    /// The result of a call that must succeed.
    pub async fn ok(&self, name: &str, arguments: Value) -> Value {
        let output = self.call(name, arguments).await;
        assert!(output.success, "{output:?}");
        serde_json::from_str(&output.output).unwrap()
    }

    /// The `output` of a call that must succeed.
    pub async fn text(&self, name: &str, arguments: Value) -> String {
        self.ok(name, arguments).await["output"].as_str().unwrap().to_owned()
    }

    /// The message of a call that must fail.
    pub async fn error(&self, name: &str, arguments: Value) -> String {
        let output = self.call(name, arguments).await;
        assert!(!output.success, "{output:?}");
        let value: Value = serde_json::from_str(&output.output).unwrap();
        value["error"].as_str().unwrap().to_owned()
    }

    /// Names in the folder, hidden ones too.
    pub fn names(&self, folder: &str) -> Vec<String> {
        let entries = std::fs::read_dir(self.path(folder)).unwrap();
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }
}

/// Progress that is kept.
#[derive(Default)]
pub struct Heard(pub Mutex<String>);

impl Progress for Heard {
    fn output(&self, text: &str) {
        self.0.lock().unwrap().push_str(text);
    }
}
