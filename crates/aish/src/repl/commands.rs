//! What the meta commands do.

use super::meta::{self, Meta};
use super::{ModelLines, Next, Repl, ReplError, restore, show};
use crate::sessions::of_persons;
use crate::term::Form;
use crate::term::columns::cut;
use aish_core::policy::ApprovalMode;
use aish_core::sanitize;
use aish_engine::{Driver, Routing, Settings, now_ms};
use aish_store::{SessionFilter, SessionSummary};
use std::sync::Arc;

/// Sessions that are listed.
const SESSIONS_SHOWN_MAX: usize = 15;
/// Characters of an id's end that tell sessions apart: the beginning of a UUIDv7 is the time.
const SHORT_ID_CHARS: usize = 8;
/// Columns of a title in a list, at least.
const TITLE_COLUMNS_MIN: usize = 20;
/// Columns of a list's line that its other fields take.
const LIST_FIELDS_COLUMNS: usize = 32;

impl Repl {
    /// Does it.
    pub(super) async fn meta(&mut self, command: Meta) -> Result<Next, ReplError> {
        match command {
            Meta::Help => self.front.print(&meta::help(self.front.renderer.look().width())).await,
            Meta::Model(None) => {
                let name = self.engine.settings().model;
                let name = if name.is_empty() { "none".to_owned() } else { name };
                self.front.say(&format!("model: {name}")).await;
            }
            Meta::Model(Some(name)) => self.choose_model(name).await,
            Meta::Models => self.list_models().await,
            Meta::Tools => {
                let text = tools(&self.engine.tools.now().specs(), self.columns());
                self.front.print(&text).await;
            }
            Meta::Policy(None) => {
                let text = policy(&self.engine.settings());
                self.front.print(&text).await;
            }
            Meta::Policy(Some(mode)) => {
                self.engine.update(|settings| settings.mode = mode);
                self.front
                    .say(&format!("policy: {}; {}", mode.word(), meaning(mode)))
                    .await;
            }
            Meta::Clear => match self.driver.clear().await {
                Ok(()) => self.front.say("context cleared; the ledger keeps everything").await,
                Err(error) => self.front.say(&error.to_string()).await,
            },
            Meta::Resume(id) => self.resume(id).await?,
            Meta::Sessions => self.list_sessions().await,
            Meta::Show(call) => {
                let text = show::result_text(self.driver.session(), call.as_deref(), &self.engine.redactor);
                self.show(text).await;
            }
            Meta::Copy(part) => self.copy(part).await,
            Meta::Thinking => {
                let text = show::thinking_text(self.driver.session(), &self.engine.redactor);
                self.show(text).await;
            }
            Meta::Usage => {
                let text = self.usage_report();
                self.front.print(&text).await;
            }
            Meta::Mcp(line) => self.mcp(&line).await?,
            Meta::Prompt(line) => return self.ask_prompt(&line).await,
            Meta::Quit => return Ok(Next::Quit),
        }
        Ok(Next::Prompt)
    }

    async fn choose_model(&mut self, name: String) {
        match self.engine.models.model(&name) {
            Ok(_) => {
                self.front.renderer.expect_model(&name);
                self.front
                    .say(&format!("model: {name}, from the next message on"))
                    .await;
                // Whoever names a model wants that one asked, whatever is asked of it.
                self.engine.update(|settings| {
                    settings.model = name;
                    settings.routing = Routing::default();
                });
            }
            Err(problem) => self.front.say(&problem).await,
        }
    }

    async fn list_models(&mut self) {
        let list = (self.options.models)();
        let models = self
            .front
            .watch(|_, mut cancel| async move {
                tokio::select! {
                    models = list => Some(models),
                    _ = cancel.wait_for(|cancelled| *cancelled) => None,
                }
            })
            .await;
        let Some(ModelLines { lines: models, remarks }) = models else {
            return self.front.say("stopped").await;
        };
        for remark in &remarks {
            self.front.say(remark).await;
        }
        if models.is_empty() {
            return;
        }
        let current = self.engine.settings().model;
        let lines = models.iter().map(|model| {
            let mark = if model.name == current { '*' } else { ' ' };
            let line = match model.name.as_str() {
                "" => model.origin.clone(),
                name => format!("{name}  {}", model.origin),
            };
            format!("{mark} {}\n", sanitize::single_line(&line))
        });
        self.front.print(&lines.collect::<String>()).await;
        let names = models.into_iter().map(|model| model.name);
        self.words
            .update(|words| words.models = names.filter(|name| !name.is_empty()).collect());
    }

    async fn list_sessions(&mut self) {
        let filter = SessionFilter {
            limit: Some(SESSIONS_SHOWN_MAX),
            ..SessionFilter::default()
        };
        match self.sessions(filter).await {
            Ok(sessions) if sessions.is_empty() => self.front.say("no session yet").await,
            Ok(mut sessions) => {
                for session in &mut sessions {
                    session.title = self.engine.redactor.redact(&session.title).into_owned();
                }
                let text = list(&sessions, now_ms(), self.columns());
                self.front.print(&text).await;
            }
            Err(error) => self.front.say(&error.to_string()).await,
        }
    }

    /// Some sessions; their ids complete from then on.
    async fn sessions(&mut self, filter: SessionFilter) -> Result<Vec<SessionSummary>, aish_store::StoreError> {
        let sessions = self.engine.store.list(filter).await?;
        let ids = sessions
            .iter()
            .map(|session| short_id(session.id.as_str()).to_owned())
            .collect();
        self.words.update(|words| words.sessions = ids);
        Ok(sessions)
    }

    async fn resume(&mut self, wanted: Option<String>) -> Result<(), ReplError> {
        let current = self.driver.session().id().clone();
        let found = match wanted {
            Some(wanted) => self.engine.store.find(&wanted).await.map(Some),
            None => self
                .sessions(of_persons(SESSIONS_SHOWN_MAX))
                .await
                .map(|sessions| sessions.into_iter().map(|session| session.id).find(|id| *id != current)),
        };
        let id = match found {
            Ok(Some(id)) if id == current => return self.told("that is this session").await,
            Ok(Some(id)) => id,
            Ok(None) => return self.told("there is no other session").await,
            Err(error) => return self.told(&error.to_string()).await,
        };
        match Driver::open(Arc::clone(&self.engine), id).await {
            Ok(driver) => {
                self.driver.settle().await;
                self.driver = driver;
                self.driver.watch(&self.front.notices);
                let messages = self.driver.session().context_len();
                self.front.say(&format!("session restored: {messages} messages")).await;
                self.restored().await
            }
            Err(error) => self.told(&error.to_string()).await,
        }
    }

    /// Shows a session that was opened, and what is left to do in it.
    pub(super) async fn restored(&mut self) -> Result<(), ReplError> {
        let session = self.driver.session();
        self.front
            .draw(|renderer, out| restore::conversation(session, renderer, out))
            .await;
        self.open_turn().await
    }

    async fn told(&mut self, text: &str) -> Result<(), ReplError> {
        self.front.say(text).await;
        Ok(())
    }

    /// Shows a long text, by pages where there is a screen.
    pub(super) async fn show(&mut self, text: Result<String, String>) {
        match text {
            Ok(text) => {
                let look = self.front.renderer.look();
                if look.form == Form::Framed && text.lines().count() > look.rows {
                    let _found = self.front.guard.as_found();
                    if show::page(&text, &self.options.environment).await {
                        return;
                    }
                }
                self.front.print(&text).await;
            }
            Err(problem) => self.front.say(&problem).await,
        }
    }

    fn columns(&self) -> usize {
        let look = self.front.renderer.look();
        match look.form {
            Form::Framed => look.columns,
            Form::Plain => usize::MAX,
        }
    }
}

/// The end of an id, which is enough to name a session by.
fn short_id(id: &str) -> &str {
    let start = id.len().saturating_sub(SHORT_ID_CHARS);
    id.get(start..).unwrap_or(id)
}

fn meaning(mode: ApprovalMode) -> &'static str {
    match mode {
        ApprovalMode::Ask => "asks about everything that is not proven harmless",
        ApprovalMode::Auto => "asks about what may destroy or is unknown",
        ApprovalMode::Full => "asks about nothing; deny rules still hold",
    }
}

fn tools(specs: &[aish_core::ToolSpec], columns: usize) -> String {
    if specs.is_empty() {
        return "no tools\n".to_owned();
    }
    let width = specs.iter().map(|spec| spec.name.chars().count()).max().unwrap_or(0);
    let lines = specs.iter().map(|spec| {
        let first = spec.description.lines().next().unwrap_or_default();
        let line = format!("  {:width$}  {first}", spec.name);
        cut(&sanitize::single_line(&line), columns.saturating_sub(1)) + "\n"
    });
    lines.collect()
}

fn policy(settings: &Settings) -> String {
    let mut lines = vec![format!("mode {}: {}", settings.mode.word(), meaning(settings.mode))];
    let policy = &settings.policy;
    for (word, rules) in [("deny", &policy.deny), ("ask", &policy.ask), ("allow", &policy.allow)] {
        lines.extend(rules.iter().map(|rule| format!("  {word:5}  {rule}")));
    }
    for (name, allowed) in &policy.auto_approve {
        let word = if *allowed { "allow" } else { "ask" };
        lines.push(format!("  {word:5}  {name} (auto_approve)"));
    }
    if policy.read_only_inside_tree {
        lines.push(format!(
            "  allow  reading inside {}, nothing that looks secret",
            policy.root.display()
        ));
    }
    lines
        .iter()
        .map(|line| format!("{}\n", sanitize::single_line(line)))
        .collect()
}

fn list(sessions: &[SessionSummary], now: u64, columns: usize) -> String {
    let title_columns = columns.saturating_sub(LIST_FIELDS_COLUMNS).max(TITLE_COLUMNS_MIN);
    let lines = sessions.iter().map(|session| {
        let title = cut(&sanitize::single_line(&session.title), title_columns);
        let waiting = if session.waiting { "waits" } else { "" };
        let ago = ago(now.saturating_sub(session.updated));
        format!("  {}  {ago:>10}  {waiting:5}  {title}\n", short_id(session.id.as_str()))
    });
    lines.collect()
}

/// How long ago, in the largest unit that fits.
pub(super) fn ago(elapsed_ms: u64) -> String {
    let minutes = elapsed_ms / 60_000;
    match (minutes, minutes / 60, minutes / (24 * 60)) {
        (0, _, _) => "just now".to_owned(),
        (minutes, 0, _) => format!("{minutes} min"),
        (_, hours, 0) => format!("{hours} h"),
        (_, _, days) => format!("{days} d"),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use aish_core::id::SessionId;

    fn session(title: &str, minutes_ago: u64, waiting: bool) -> SessionSummary {
        SessionSummary {
            id: SessionId::from_parts(0, 7),
            created: 0,
            updated: 10_000_000_000 - minutes_ago * 60_000,
            events: 3,
            title: title.into(),
            directory: String::new(),
            waiting,
        }
    }

    /// SPEC 2.8: sessions are named by what tells them apart; SPEC 8.8: their titles are escaped.
    #[test]
    fn session_lists() {
        let sessions = [
            session("find the sources of the river", 0, false),
            session("a\x1b[2J\nb", 90, true),
            session("old", 3 * 24 * 60, false),
        ];
        insta::assert_snapshot!(list(&sessions, 10_000_000_000, 60), @r#"
        00000007    just now         find the sources of the riv…
        00000007         1 h  waits  a\x1b[2J\nb
        00000007         3 d         old
        "#);
    }

    /// Tools are one line each.
    #[test]
    fn tool_lists() {
        let spec = |name: &str, description: &str| aish_core::ToolSpec {
            name: name.into(),
            description: description.into(),
            input_schema: serde_json::json!({}),
        };
        let specs = [
            spec("glob", "Finds files whose path fits a pattern.\nMore."),
            spec("file_read", "日本語日本語日本語"),
        ];
        insta::assert_snapshot!(tools(&specs, 26), @"
        glob       Finds files…
        file_read  日本語日本…
        ");
        assert_eq!(tools(&[], 80), "no tools\n");
    }
}
