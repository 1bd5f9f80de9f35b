//! Opens the conversational prompt: what the program knows becomes what the prompt needs.

use crate::app::App;
use crate::cli::Start;
use crate::failure::Failure;
use crate::models::{NO_MODEL, list};
use crate::oneshot;
use crate::repl::{ModelLine, Opened, Repl, ReplOptions};
use std::sync::Arc;

/// Opens the prompt on a session.
///
/// # Errors
/// The session or the terminal cannot be opened.
pub async fn open(app: &App, start: &Start) -> Result<u8, Failure> {
    let (engine, registry) = app.engine().await?;
    let driver = oneshot::open(&engine, start).await?;
    let opened = if driver.session().last_seq() == 0 {
        Opened::New
    } else {
        Opened::Restored
    };
    let model = engine.settings().model;
    let options = ReplOptions {
        environment: app.environment.clone(),
        data_dir: app.paths.data_dir.clone(),
        opened,
        welcome: welcome(&model, opened),
        model_names: app.config().models.iter().map(|model| model.name.clone()).collect(),
        models: Box::new(move || {
            let registry = Arc::clone(&registry);
            Box::pin(async move {
                let (shown, left_out) = list::shortened(registry.choices().await, None);
                let lines = shown.into_iter().map(|choice| ModelLine {
                    origin: list::origin(&registry, &choice),
                    name: choice.name,
                });
                let more = left_out.into_iter().map(|(provider, count)| ModelLine {
                    name: String::new(),
                    origin: list::more(&provider, count),
                });
                lines.chain(more).collect()
            })
        }),
        save_rule: app.rule_saver(),
        prices: app.prices(),
    };
    Repl::run(engine, driver, options)
        .await
        .map_err(|error| Failure::failed(error.to_string()))
}

/// A few lines for somebody who has just arrived; none for somebody who comes back.
fn welcome(model: &str, opened: Opened) -> String {
    match (opened, model) {
        (Opened::Restored, _) => String::new(),
        (Opened::New, "") => format!(
            "No model to talk to yet; everything else works.\n  {}\n  {}\n  {}",
            NO_MODEL[0], NO_MODEL[1], NO_MODEL[2]
        ),
        (Opened::New, model) => {
            format!("{model} is listening. Ask anything; !cmd runs a command; :help says the rest.")
        }
    }
}
