//! Where a line without a mark goes (SPEC 8.1): guessed while it is typed, flipped by a key, learnt from.
//!
//! One [`Router`] is shared: the editor's thread asks it for the route of the line being typed, tells it of the flip key, and
//! shows what it answered ([`Router::seen`]); the loop asks it where the line goes once it was sent. Both see the same answer, so
//! what was shown is what happens. What was flipped before is [`kept`].

pub mod kept;

use super::route::{Mark, mark};
use crate::shell::known::Knowledge;
use aish_shell::route::{Corrections, Guess, Route, Sent, Sure};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Where lines go.
#[derive(Clone)]
pub struct Router {
    known: Knowledge,
    shared: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    corrections: Corrections,
    flip: Flip,
    seen: Seen,
}

/// What the flip key did to the line being typed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Flip {
    /// Nothing.
    #[default]
    No,
    /// It was pressed; keys that came with it may still change the line, so the line decides when it is next looked at. Where
    /// the line went before, if it had been flipped before.
    Pressed(Option<Sent>),
    /// The line goes there.
    To(Sent),
}

impl Flip {
    fn pressed(self) -> Self {
        match self {
            Self::No => Self::Pressed(None),
            Self::Pressed(None) => Self::No,
            Self::Pressed(Some(before)) => Self::To(before),
            Self::To(now) => Self::Pressed(Some(now)),
        }
    }

    /// Settled by where the line would go without it.
    fn settled(self, guess: &Guess) -> Self {
        let Self::Pressed(before) = self else {
            return self;
        };
        let guessed = match guess.route {
            Route::Nothing => return Self::No,
            Route::Question => Sent::Model,
            // Nobody runs it as it is, but that is what it was typed for.
            Route::Command | Route::Mistyped { .. } => Sent::Shell,
        };
        let to = match before.unwrap_or(guessed) {
            Sent::Shell => Sent::Model,
            Sent::Model => Sent::Shell,
        };
        let as_guessed = matches!(
            (&guess.route, to),
            (Route::Command, Sent::Shell) | (Route::Question, Sent::Model)
        );
        if as_guessed { Self::No } else { Self::To(to) }
    }
}

/// Where the line being typed goes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Way {
    /// Nowhere: it is empty.
    #[default]
    Nothing,
    /// To a meta command.
    Meta,
    /// To the shell.
    Shell,
    /// To the model.
    Model,
    /// Nowhere as it is; this is what was meant, probably.
    Mistyped(String),
}

/// Why it goes there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Because {
    /// It is plain, or a mark says so.
    #[default]
    Plain,
    /// It is the better guess.
    Guessed,
    /// The person flipped it.
    Flipped,
}

/// What is shown of the line being typed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// The line.
    pub line: String,
    /// Where it goes.
    pub way: Way,
    /// Why.
    pub because: Because,
}

/// Where a line that was sent goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The route.
    pub route: Route,
    /// What was learnt from it, to be kept.
    pub learnt: Option<Sent>,
}

impl Router {
    /// By what the shell knows, and what the person said before.
    pub fn new(known: Knowledge, corrections: Corrections) -> Self {
        let state = State {
            corrections,
            ..State::default()
        };
        Self {
            known,
            shared: Arc::new(Mutex::new(state)),
        }
    }

    /// What the shell can run.
    pub fn known(&self) -> Knowledge {
        self.known.clone()
    }

    /// Where that line, which is the one being typed, would go without the flip key, and where the key sends it. To be called
    /// with each line that is shown, before what is [`seen`](Router::seen) is drawn around it.
    pub fn shown(&self, line: &str) -> (Guess, Option<Sent>) {
        let mut state = self.lock();
        let guess = self.guess(&state, line);
        // A line that was emptied is another line.
        state.flip = match (&guess.route, mark(line)) {
            (Route::Nothing, _) | (_, Some(_)) => Flip::No,
            (Route::Command | Route::Question | Route::Mistyped { .. }, None) => state.flip.settled(&guess),
        };
        let flipped = match state.flip {
            Flip::To(sent) => Some(sent),
            Flip::No | Flip::Pressed(_) => None,
        };
        state.seen = seen(line, &guess, flipped);
        (guess, flipped)
    }

    /// What is to be shown of the line last [`shown`](Router::shown).
    pub fn seen(&self) -> Seen {
        self.lock().seen.clone()
    }

    /// The flip key: the line being typed goes the other way.
    pub fn flip(&self) {
        let mut state = self.lock();
        state.flip = state.flip.pressed();
    }

    /// Where a line without a mark goes by itself, whatever was pressed.
    pub fn guessed(&self, line: &str) -> Route {
        self.guess(&self.lock(), line).route
    }

    /// Whether a line without a mark is a command, and surely one.
    pub fn is_command(&self, line: &str) -> bool {
        let guess = self.guess(&self.lock(), line);
        (guess.route, guess.sure) == (Route::Command, Sure::Yes)
    }

    /// Where a line without a mark goes, now that it was sent; the next line begins without a flip. A flip that changed the
    /// route is learnt.
    pub fn decide(&self, line: &str) -> Decision {
        let mut state = self.lock();
        let guess = self.guess(&state, line);
        let flip = std::mem::take(&mut state.flip).settled(&guess);
        let Flip::To(sent) = flip else {
            return Decision {
                route: guess.route,
                learnt: None,
            };
        };
        let route = match sent {
            Sent::Shell => Route::Command,
            Sent::Model => Route::Question,
        };
        // The line may have gone on to something that goes there by itself.
        let changed = route != guess.route;
        if changed {
            state.corrections.learn(line, sent);
        }
        Decision {
            route,
            learnt: changed.then_some(sent),
        }
    }

    /// A new line begins; nothing of the one before holds for it.
    pub fn begin(&self) {
        let mut state = self.lock();
        state.flip = Flip::No;
        state.seen = Seen::default();
    }

    fn guess(&self, state: &State, line: &str) -> Guess {
        match mark(line) {
            Some((Mark::Meta, _)) => Guess {
                route: Route::Nothing,
                sure: Sure::Yes,
                why: "a meta command",
            },
            Some((Mark::Shell, rest)) => marked(rest, Route::Command),
            Some((Mark::Model, rest)) => marked(rest, Route::Question),
            None => {
                let mut guess = state.corrections.guess(line, &self.known);
                // What is no command yet may be one that is not known yet.
                if guess.route != Route::Command && !self.known.is_complete() {
                    guess.sure = Sure::No;
                }
                guess
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn marked(rest: &str, route: Route) -> Guess {
    Guess {
        route: if rest.is_empty() { Route::Nothing } else { route },
        sure: Sure::Yes,
        why: "its mark says so",
    }
}

fn seen(line: &str, guess: &Guess, flipped: Option<Sent>) -> Seen {
    let marked = match mark(line) {
        Some((Mark::Meta, _)) => Some(Way::Meta),
        Some((Mark::Shell, _)) => Some(Way::Shell),
        Some((Mark::Model, _)) => Some(Way::Model),
        None => None,
    };
    let guessed = match &guess.route {
        Route::Nothing => Way::Nothing,
        Route::Command => Way::Shell,
        Route::Question => Way::Model,
        Route::Mistyped { instead } => Way::Mistyped(instead.clone()),
    };
    let because = match guess.sure {
        Sure::Yes => Because::Plain,
        Sure::No => Because::Guessed,
    };
    let (way, because) = match (marked, flipped) {
        (Some(way), _) => (way, Because::Plain),
        (None, Some(Sent::Shell)) => (Way::Shell, Because::Flipped),
        (None, Some(Sent::Model)) => (Way::Model, Because::Flipped),
        (None, None) => (guessed, because),
    };
    Seen {
        line: line.to_owned(),
        way,
        because,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn router() -> Router {
        let known = Knowledge::of_programs(["git", "kill", "ls", "make"]);
        Router::new(known, Corrections::default())
    }

    fn check(router: &Router, line: &str, way: Way, because: Because) {
        router.shown(line);
        let seen = router.seen();
        assert_eq!((seen.way, seen.because), (way, because), "{line:?}");
    }

    /// SPEC 8.1: the route is known while the line is typed; marks decide alone.
    #[test]
    fn lines_are_seen() {
        let router = router();
        check(&router, "", Way::Nothing, Because::Plain);
        check(&router, "git status", Way::Shell, Because::Plain);
        check(&router, "why did that fail?", Way::Model, Because::Plain);
        check(&router, ":model desk", Way::Meta, Because::Plain);
        check(&router, "!why", Way::Shell, Because::Plain);
        check(&router, "?ls", Way::Model, Because::Plain);
        check(
            &router,
            "gti status",
            Way::Mistyped("git status".into()),
            Because::Guessed,
        );
    }

    /// SPEC 8.1: one key flips the route, for this line only; again, and it is as before.
    #[test]
    fn flips() {
        let router = router();
        router.shown("ls -l");
        router.flip();
        check(&router, "ls -l", Way::Model, Because::Flipped);
        check(&router, "ls -la", Way::Model, Because::Flipped);
        router.flip();
        check(&router, "ls -la", Way::Shell, Because::Plain);
        router.flip();
        check(&router, "", Way::Nothing, Because::Plain);
        check(&router, "ls", Way::Shell, Because::Plain);
        router.flip();
        router.begin();
        check(&router, "ls", Way::Shell, Because::Plain);
        router.flip();
        check(&router, "!ls", Way::Shell, Because::Plain);
        check(
            &router,
            "gti status",
            Way::Mistyped("git status".into()),
            Because::Guessed,
        );
        router.flip();
        check(&router, "gti status", Way::Model, Because::Flipped);
        router.flip();
        check(&router, "gti status", Way::Shell, Because::Flipped);
    }

    /// SPEC 8.1: a key that comes in one piece with the line flips it all the same.
    #[test]
    fn flips_that_come_with_the_line() {
        let router = router();
        router.begin();
        router.flip();
        let decision = router.decide("ls -l");
        assert_eq!((decision.route, decision.learnt), (Route::Question, Some(Sent::Model)));
    }

    /// SPEC 8.1: a flip that changed the route is learnt; one that did not is not, nor is one of the line before.
    #[test]
    fn flips_are_learnt() {
        let router = router();
        assert_eq!(router.decide("kill chrome").route, Route::Question);
        router.flip();
        router.shown("kill chrome");
        let decision = router.decide("kill chrome");
        assert_eq!((decision.route, decision.learnt), (Route::Command, Some(Sent::Shell)));
        assert_eq!(
            router.decide("kill chrome"),
            Decision {
                route: Route::Command,
                learnt: None
            }
        );
        // Flipped to the shell as a question, then gone on with to what is a command anyway.
        router.shown("git");
        router.shown("make me a sandwich");
        router.flip();
        router.shown("make me a sandwich");
        router.shown("git status");
        assert_eq!(router.decide("git status").learnt, None);
    }

    /// Before all programs were read, what is no command may still be one: that is not sure.
    #[test]
    fn not_sure_before_all_is_known() {
        let router = Router::new(Knowledge::default(), Corrections::default());
        check(&router, "what is a monad?", Way::Model, Because::Guessed);
    }
}
