//! Questions that somebody else settles while a person is asked here.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use super::*;
use aish_core::limits::Limits;
use aish_core::policy::{ApprovalMode, Policy};
use aish_core::redact::Redactor;
use aish_engine::{Engine, Model, Models, Notices, Offered, Outcome, Proposals, Routing, Settings};
use aish_provider::Provider;
use aish_provider::scripted::{Act, Scripted};
use aish_store::Owner;
use aish_store::memory::MemoryStore;
use aish_tools::set::ToolSet;
use aish_tools::{Hidden, ToolContext, WebAccess};
use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Arc, RwLock};

/// Bytes of one result that are captured; nothing runs here.
const OUTPUT_BYTES_MAX: usize = 1024;

struct OneModel(Arc<dyn Provider>);

impl Models for OneModel {
    fn model(&self, name: &str) -> Result<Model, String> {
        Ok(Model {
            name: name.to_owned(),
            asked_for: None,
            provider: Arc::clone(&self.0),
            context_window: None,
            max_output_tokens: None,
            images: false,
            fallback: Vec::new(),
        })
    }
}

/// An engine whose model calls bash with these commands.
fn engine(commands: &[&str]) -> Arc<Engine> {
    let calls: Vec<String> = commands
        .iter()
        .map(|command| serde_json::json!({ "command": command }).to_string())
        .collect();
    let calls: Vec<(&str, &str)> = calls.iter().map(|arguments| ("bash", arguments.as_str())).collect();
    let settings = Settings {
        model: "scripted".to_owned(),
        mode: ApprovalMode::Ask,
        policy: Policy::new(Path::new("/")),
        limits: Limits::default(),
        parallel: true,
        tools: true,
        instructions: String::new(),
        routing: Routing::default(),
        schema: None,
        proposals: Proposals::default(),
        context: ToolContext {
            directory: "/".into(),
            environment: Arc::default(),
            output_bytes_max: OUTPUT_BYTES_MAX,
            hidden: Hidden::default(),
            web: WebAccess::default(),
            place: None,
        },
    };
    Arc::new(Engine {
        store: Arc::new(MemoryStore::new()),
        models: Arc::new(OneModel(Arc::new(Scripted::new([Act::calls(&calls)])))),
        tools: Arc::new(Offered::new(ToolSet::builtin())),
        owner: Owner::this_process(),
        asides: Arc::default(),
        redactor: Redactor::default(),
        settings: RwLock::new(settings),
    })
}

/// What happens while one question is shown.
enum Meanwhile {
    /// The person decides.
    Decided(Decision),
    /// Somebody else answers, and the person has not yet.
    Answered(Answer),
    /// Somebody else says yes, and the person decides before that is seen here.
    Overtaken(Decision),
}

/// A person, somebody else, and what was shown in which order.
struct Two {
    /// Where somebody else is.
    elsewhere: Driver,
    meanwhile: VecDeque<Meanwhile>,
    shown: Vec<String>,
    passed: Passed,
}

impl Two {
    async fn answer(&mut self, call: &Pending, answer: Answer) {
        let request = AnswerRequest {
            answer,
            ..approval(call, AnswerScope::Once)
        };
        assert_eq!(self.elsewhere.answer(request).await.unwrap(), Answered::Recorded);
    }
}

impl Asker for Two {
    async fn decide(&mut self, _: &Tty, question: &Question<'_>, mut taken_back: Cancel) -> io::Result<Decision> {
        self.shown.push(format!("? {}", question.pending.call_id));
        match self.meanwhile.pop_front().unwrap() {
            Meanwhile::Decided(decision) => Ok(decision),
            Meanwhile::Answered(answer) => {
                self.answer(question.pending, answer).await;
                cancelled(&mut taken_back).await;
                Ok(Decision::Cancelled)
            }
            Meanwhile::Overtaken(decision) => {
                self.answer(question.pending, Answer::Approve).await;
                Ok(decision)
            }
        }
    }

    async fn pass_over(&mut self, _: &Tty, _: Duration) -> io::Result<Passed> {
        self.shown.push("keys are passed over".to_owned());
        Ok(self.passed)
    }

    async fn say(&mut self, text: &str) {
        self.shown.push(text.to_owned());
    }

    fn save(&mut self, _: &str) -> Result<PathBuf, String> {
        Err("nothing is saved here".to_owned())
    }
}

/// Asks about these commands; gives what was shown, and what asking came to.
async fn asked(commands: &[&str], meanwhile: impl Into<VecDeque<Meanwhile>>, passed: Passed) -> (Vec<String>, Asked) {
    let engine = engine(commands);
    let mut driver = Driver::create(Arc::clone(&engine));
    driver.start("go", Vec::new()).await.unwrap();
    let (_keep, cancel) = watch::channel(false);
    let Outcome::Asking(pending) = driver.drive(&Notices::new(), cancel).await.unwrap() else {
        panic!("nothing is asked");
    };
    let mut two = Two {
        elsewhere: Driver::open(engine, driver.session().id().clone()).await.unwrap(),
        meanwhile: meanwhile.into(),
        shown: Vec::new(),
        passed,
    };
    let tty = Tty::of_file(std::fs::File::open("/dev/null").unwrap());
    let asked = ask_all(&mut two, &mut driver, &tty, &pending).await.unwrap();
    (two.shown, asked)
}

/// SPEC 3.3: keys that were meant for a question which was taken back are let by before the next one is shown.
#[tokio::test]
async fn a_key_for_one_question_does_not_answer_the_next() {
    for (answer, told) in [(Answer::Approve, "approved"), (Answer::Deny, "declined")] {
        let meanwhile = [
            Meanwhile::Answered(answer),
            Meanwhile::Decided(Decision::No { reason: None }),
        ];
        let (shown, asked) = asked(&["touch one", "touch two"], meanwhile, Passed::Over).await;
        assert!(matches!(asked, Asked::Answered), "{asked:?}");
        let line = format!("bash(command=\"touch one\"): {told} from somewhere else meanwhile");
        assert_eq!(shown, ["? call_1_1", &line, "keys are passed over", "? call_1_2"]);
    }
}

/// SPEC 8.7: Ctrl-C while keys are let by stops the turn.
#[tokio::test]
async fn a_stop_while_keys_are_passed_over() {
    let meanwhile = [Meanwhile::Answered(Answer::Approve)];
    let (shown, asked) = asked(&["touch one", "touch two"], meanwhile, Passed::Cancelled).await;
    assert!(matches!(asked, Asked::Cancelled), "{asked:?}");
    assert_eq!(shown.last().unwrap(), "keys are passed over");
}

/// SPEC 5.3: a yes for the session that came after somebody else's yes grants nothing, and says so.
#[tokio::test]
async fn a_yes_for_the_session_that_comes_too_late() {
    let said = "nothing is allowed for the session";
    let (shown, _) = asked(&["touch one"], [Meanwhile::Overtaken(Decision::Session)], Passed::Over).await;
    assert!(shown.iter().any(|line| line.ends_with(said)), "{shown:?}");
    let (shown, _) = asked(&["touch one"], [Meanwhile::Overtaken(Decision::Once)], Passed::Over).await;
    assert!(!shown.iter().any(|line| line.ends_with(said)), "{shown:?}");
}
