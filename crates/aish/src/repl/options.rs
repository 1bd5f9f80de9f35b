//! What the prompt is given by whoever opens it: how things are to look, and what it has others do.

use super::{Confirm, Hinting, Welcome};
use crate::config::resolved::EditMode;
use crate::mcp::Mcp;
use crate::paths::Environment;
use crate::prices::Prices;
use crate::shell::ShellSetup;
use crate::term::Wishes;
use aish_core::event::ModelFailed;
use futures_util::future::BoxFuture;
use std::path::PathBuf;
use std::sync::Arc;

/// A model that can be chosen, for `:models`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelLine {
    /// What it is called here; empty for a line about those that are left out.
    pub name: String,
    /// Where it is and where that is known from, one line.
    pub origin: String,
}

/// All models that can be chosen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModelLines {
    /// A line each.
    pub lines: Vec<ModelLine>,
    /// What a person should know of the search, line by line: who did not tell, why there is none.
    pub remarks: Vec<String>,
}

/// Saves an allow rule; says in which file, or why not.
pub type SaveRule = Box<dyn FnMut(&str) -> Result<PathBuf, String> + Send>;
/// Finds all models there are; may look around on the network.
pub type ListModels = Box<dyn Fn() -> BoxFuture<'static, ModelLines> + Send>;
/// Lets the session begin with a model, once somebody has said which there are; gives what a person should know, line by line.
pub type ModelChoice = BoxFuture<'static, Vec<String>>;

/// Whether the session had a life before this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opened {
    /// It is new.
    New,
    /// It was restored, and whoever opened it has said so: it is shown again, and what waits in it is asked.
    Restored,
}

/// What to do about a failure of a model, where somebody knows.
pub type Advice = Box<dyn Fn(&ModelFailed) -> Option<String> + Send>;

/// What the prompt needs besides the engine.
pub struct ReplOptions {
    /// The variables of the process: `HOME`, `TERM`, `NO_COLOR`.
    pub environment: Environment,
    /// Where the history is kept.
    pub data_dir: PathBuf,
    /// Whether the session had a life before.
    pub opened: Opened,
    /// Said first, at a terminal only.
    pub welcome: Option<Welcome>,
    /// How the person wants things to look.
    pub wishes: Wishes,
    /// What still has to be awaited before a model can be asked.
    pub choice: Option<ModelChoice>,
    /// For models that give no answer.
    pub advice: Advice,
    /// Names that complete after `:model` before the models were listed.
    pub model_names: Vec<String>,
    /// For `:models`.
    pub models: ListModels,
    /// For the answer `s`.
    pub save_rule: SaveRule,
    /// Whether a command that a reply proposes is asked about where policy allows it.
    pub confirm: Confirm,
    /// What replies cost.
    pub prices: Prices,
    /// The MCP servers; closed by whoever opened them.
    pub mcp: Arc<Mcp>,
    /// Which keys edit the line.
    pub edit_mode: EditMode,
    /// Whether what was typed before is hinted at.
    pub hints: Hinting,
    /// The user's shell, for a terminal; `None` where there is none that can be driven.
    pub shell: Option<ShellSetup>,
}
