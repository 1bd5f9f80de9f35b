//! A one-shot run whose reply must fit a schema (`--schema`): held against it, asked for once more, or failed.

use super::front::{Ended, Front};
use super::written::Written;
use crate::cli::Output;
use crate::failure::{DONE, FAILED, Failure};
use crate::schema::{Schema, ask_again};
use aish_core::turn::StopReason;
use aish_engine::{Driver, Finished};
use serde_json::Value;

impl Front<'_> {
    /// Drives to the end of a reply that fits, or of the second that does not.
    pub(super) async fn finish_structured(&self, driver: &mut Driver, schema: &Schema) -> Result<u8, Failure> {
        let mut may_ask_again = true;
        loop {
            let finished = match self.turn(driver).await? {
                Ended::Done(finished) => finished,
                Ended::Waiting(code) => return Ok(code),
            };
            let problem = match (schema.check(&finished.reply), finished.reason) {
                (Ok(fitting), StopReason::End) => {
                    match self.output {
                        Output::Text => self.print(|written| written.json(fitting.text)),
                        Output::Json => self.print_finished(driver, &finished, Some(&fitting.value)),
                        Output::Jsonl => {}
                    }
                    driver.settle().await;
                    return Ok(DONE);
                }
                (Err(problem), StopReason::End) if may_ask_again => {
                    may_ask_again = false;
                    self.say(&format!(
                        "the reply does not fit the schema: {problem}; asking once more"
                    ));
                    // What there was to find out is found out. Without tools the server can hold the reply to the schema itself,
                    // which local ones cannot do beside calls.
                    driver.engine().update(|settings| settings.tools = false);
                    driver.start(&ask_again(&problem), Vec::new()).await?;
                    continue;
                }
                (Err(problem), StopReason::End) => Some(problem),
                (Ok(_) | Err(_), _) => None,
            };
            let code = self.report_unfit(driver, &finished, problem.as_deref());
            driver.settle().await;
            return Ok(code);
        }
    }

    /// A reply that is no answer to a script; it is written all the same, for whoever wants to see what came.
    fn report_unfit(&self, driver: &Driver, finished: &Finished, problem: Option<&str>) -> u8 {
        match self.output {
            Output::Text => self.print(|written| written.text(&finished.said)),
            Output::Json => self.print_finished(driver, finished, Some(&Value::Null)),
            Output::Jsonl => {}
        }
        let code = self.tell_end(driver, finished);
        match problem {
            Some(problem) => self.say(&format!("the reply does not fit the schema: {problem}")),
            None if code == DONE => self.say("the turn ended without a reply that could fit the schema"),
            None => {}
        }
        code.max(FAILED)
    }

    fn print(&self, print: impl FnOnce(&mut Written)) {
        let mut written = Written::new(&self.redactor).on(&self.page);
        print(&mut written);
        written.end_line();
    }
}
