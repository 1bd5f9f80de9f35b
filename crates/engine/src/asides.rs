//! What happens beside a running call and belongs into its ledger: questions of MCP servers and their answers (SPEC 6.9).
//!
//! Whoever hears a server does not know the session; the driver whose call runs does. So it is told here, and taken by the
//! driver that runs a call of that server; where none does, nothing is recorded and nobody waits.

use aish_core::event::Body;
use aish_core::id::CallId;
use std::sync::{Mutex, PoisonError};
use tokio::sync::mpsc;

/// Asides that wait for a driver that is busy; what comes on top is not recorded.
const WAITING_MAX: usize = 64;

/// Makes the body of an event, told which call it belongs to, where that is known.
type MakeBody = std::sync::Arc<dyn Fn(Option<CallId>) -> Body + Send + Sync>;

/// Something to be recorded.
#[derive(Clone)]
pub(crate) struct Aside {
    /// The alias of the server it is about.
    pub(crate) server: String,
    pub(crate) content: String,
    pub(crate) body: MakeBody,
    /// Told when it is in the ledger; dropped when it is nobody's.
    recorded: mpsc::Sender<()>,
}

impl Aside {
    /// Says that it is in the ledger.
    pub(crate) fn written(self) {
        // Nobody waiting any more is as good.
        let _ = self.recorded.try_send(());
    }
}

/// True for the tools of that server.
pub(crate) fn is_of(tool: &str, server: &str) -> bool {
    tool.split_once('.').is_some_and(|(alias, _)| alias == server)
}

/// Where asides are told.
#[derive(Default)]
pub struct Asides {
    ears: Mutex<Vec<mpsc::Sender<Aside>>>,
}

impl Asides {
    /// Records an event in the session whose driver runs a call of that server; false where there is none. Returns when it is
    /// written, so that what is in the ledger happened before what follows.
    pub async fn record(
        &self,
        server: &str,
        content: impl Into<String>,
        body: impl Fn(Option<CallId>) -> Body + Send + Sync + 'static,
    ) -> bool {
        self.tell(server, content, body).recv().await.is_some()
    }

    /// The same, for whoever cannot wait: what is given back need not be looked at.
    pub fn tell(
        &self,
        server: &str,
        content: impl Into<String>,
        body: impl Fn(Option<CallId>) -> Body + Send + Sync + 'static,
    ) -> mpsc::Receiver<()> {
        let (recorded, is_recorded) = mpsc::channel(1);
        let aside = Aside {
            server: server.to_owned(),
            content: content.into(),
            body: std::sync::Arc::new(body),
            recorded,
        };
        {
            let mut ears = self.ears.lock().unwrap_or_else(PoisonError::into_inner);
            ears.retain(|ear| !ear.is_closed());
            for ear in ears.iter() {
                // A driver that is that far behind has other troubles.
                let _ = ear.try_send(aside.clone());
            }
        }
        is_recorded
    }

    /// Hears of asides until what is given back is dropped.
    pub(crate) fn listen(&self) -> mpsc::Receiver<Aside> {
        let (ear, asides) = mpsc::channel(WAITING_MAX);
        self.ears.lock().unwrap_or_else(PoisonError::into_inner).push(ear);
        asides
    }
}
