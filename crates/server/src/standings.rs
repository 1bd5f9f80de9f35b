//! Where sessions stand, remembered: it follows from their events alone, so it holds for as long as there are no more of them. Whoever
//! reads a long session page by page has it folded once.

use aish_core::id::SessionId;
use aish_engine::{Conversations, ServeError, Standing};
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Sessions that are remembered; once there are so many, all are forgotten.
const SESSIONS_MAX: usize = 64;

/// Where sessions stood, with how many events they had.
#[derive(Default)]
pub(crate) struct Standings(Mutex<HashMap<SessionId, (u64, Standing)>>);

impl Standings {
    /// Where a session of so many events stands. One that has more by now may stand where it does with them.
    pub(crate) async fn of(
        &self,
        conversations: &Conversations,
        session: &SessionId,
        events: u64,
    ) -> Result<Standing, ServeError> {
        let known = self.known().get(session).cloned();
        if let Some((_, standing)) = known.filter(|(then, _)| *then == events) {
            return Ok(standing);
        }
        let (_, standing) = conversations.standing(session.as_str()).await?;
        let mut known = self.known();
        if known.len() >= SESSIONS_MAX {
            known.clear();
        }
        known.insert(session.clone(), (events, standing.clone()));
        Ok(standing)
    }

    fn known(&self) -> MutexGuard<'_, HashMap<SessionId, (u64, Standing)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
