//! Who follows a session while it goes on (SPEC 9.8): any number of readers, none of which slows a turn.
//!
//! What happens is put into one ring for each session that somebody follows or that runs; a reader that falls behind by a whole
//! ring is cut, and comes back for the rest to the ledger. What a reply says bit by bit is in the ring only; events that are long are
//! in the ledger only, and what an event says anyway is not told twice, so that a ring stays small whatever tools give.

use crate::Notice;
use crate::driver::Driver;
use aish_core::event::Event;
use aish_core::id::SessionId;
use aish_core::session::Session;
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use tokio::sync::{Notify, OnceCell, broadcast, watch};

/// How far a reader may fall behind, in items.
const BEHIND_MAX: usize = 256;
/// Bytes of an event, images and arguments included, that is put into the ring; readers find a longer one in the ledger.
const EVENT_BYTES_MAX: usize = 64 * 1024;
/// Forgotten sessions are swept out once there are so many in the list; the next time, once there are twice as many.
const SWEEP_AT: usize = 64;

/// What readers are told.
#[derive(Clone, Debug)]
pub enum Live {
    /// An event is in the ledger.
    Event(Box<Event>),
    /// Something that no event says, or only later: a piece of text, output of a running tool.
    Notice(Notice),
    /// An event of this place is in the ledger, too long to be kept here for all readers.
    Long(u64),
    /// The turn could not go on here; one line.
    Failed(String),
}

/// One of them, shared by all readers with the form they are sent it in.
#[derive(Debug)]
pub struct Item {
    /// What it is.
    pub live: Live,
    frame: OnceLock<Arc<[u8]>>,
    told: OnceCell<Arc<[u8]>>,
}

impl Item {
    /// As it is sent: made by the first reader who asks, for all of them.
    pub fn frame(&self, make: impl FnOnce(&Live) -> Vec<u8>) -> Arc<[u8]> {
        Arc::clone(self.frame.get_or_init(|| make(&self.live).into()))
    }

    /// What goes after it, as it is sent: made by one reader, for whom the others wait.
    ///
    /// # Errors
    /// It could not be made; the next reader tries again.
    pub async fn told<E>(&self, make: impl AsyncFnOnce() -> Result<Vec<u8>, E>) -> Result<Arc<[u8]>, E> {
        let made = async || Ok(Arc::from(make().await?));
        self.told.get_or_try_init(made).await.map(Arc::clone)
    }
}

/// What is told of one session.
#[derive(Debug)]
pub(super) struct Hub {
    sender: broadcast::Sender<Arc<Item>>,
    /// The last event that was told, or that all readers had when they came.
    last_seq: AtomicU64,
    /// Counts what this process does to the session by itself: of its own writes a store tells no news.
    stirred: watch::Sender<u64>,
}

impl Hub {
    pub(super) fn send(&self, live: Live) {
        let live = match live {
            Live::Event(event) => {
                self.last_seq.fetch_max(event.seq, Ordering::AcqRel);
                if is_long(&event) {
                    Live::Long(event.seq)
                } else {
                    Live::Event(event)
                }
            }
            Live::Long(_) | Live::Notice(_) | Live::Failed(_) => live,
        };
        let item = Item {
            live,
            frame: OnceLock::new(),
            told: OnceCell::new(),
        };
        // Nobody may follow it.
        let _ = self.sender.send(Arc::new(item));
    }

    pub(super) fn forward(&self, notices: VecDeque<Notice>) {
        for notice in notices {
            match notice {
                Notice::Recorded(event) => self.send(Live::Event(event)),
                Notice::Text(_)
                | Notice::Thinking(_)
                | Notice::CallBegun { .. }
                | Notice::CallStarted { .. }
                | Notice::ToolOutput { .. }
                | Notice::CallStep { .. }
                | Notice::Retrying { .. }
                | Notice::Status(_) => self.send(Live::Notice(notice)),
                // Events say it, or it is for a terminal.
                Notice::Asking { .. }
                | Notice::ReplyEnded
                | Notice::CommandOutput(_)
                | Notice::Beside(_)
                | Notice::CallEnded { .. }
                | Notice::Usage(_) => {}
            }
        }
    }

    /// Tells of the events from that one on, as far as they were not told.
    pub(super) fn tell_until(&self, seq: u64, session: &Session) {
        let from = seq.max(self.last_seq() + 1);
        for event in session.events().iter().filter(|event| event.seq >= from) {
            self.send(Live::Event(Box::new(event.clone())));
        }
    }

    pub(super) fn last_seq(&self) -> u64 {
        self.last_seq.load(Ordering::Acquire)
    }

    /// Changes with what this process does to the session by itself, while this hub is held.
    pub(super) fn stirring(&self) -> watch::Receiver<u64> {
        self.stirred.subscribe()
    }

    pub(super) fn is_followed(&self) -> bool {
        self.sender.receiver_count() > 0
    }
}

fn is_long(event: &Event) -> bool {
    let output = event.tool_result().map_or(0, |result| result.output.len());
    // What is long is nearly always the text: the rest of such an event need not be written out to see it.
    event.content.len() + output > EVENT_BYTES_MAX
        || event.content.len() + event.body.data_json().len() > EVENT_BYTES_MAX
}

/// Follows one session. A clone begins with what is told from then on.
#[derive(Debug)]
pub struct Reader {
    receiver: broadcast::Receiver<Arc<Item>>,
    hub: Arc<Hub>,
}

impl Clone for Reader {
    fn clone(&self) -> Self {
        Self {
            receiver: self.receiver.resubscribe(),
            hub: Arc::clone(&self.hub),
        }
    }
}

impl Reader {
    /// What comes next; `None` once this reader has fallen too far behind.
    pub async fn next(&mut self) -> Option<Arc<Item>> {
        self.receiver.recv().await.ok()
    }

    /// This reader has all events of the ledger up to that one: the first of all readers says with it where telling begins. Gives
    /// where it has: a reader that has less gets the rest from the ledger, and from there on all is told.
    pub fn has_seen(&self, seq: u64) -> u64 {
        let last = &self.hub.last_seq;
        let begun = last.compare_exchange(0, seq, Ordering::AcqRel, Ordering::Acquire);
        begun.map_or_else(|told| told, |_| seq)
    }
}

/// The sessions that somebody follows, or that run.
#[derive(Default)]
pub(super) struct Hubs {
    all: Mutex<Listed>,
    /// Told of everybody who comes to follow a session.
    came: Notify,
}

#[derive(Default)]
struct Listed {
    hubs: HashMap<SessionId, Weak<Hub>>,
    sweep_at: usize,
}

impl Hubs {
    pub(super) fn of(&self, session: &SessionId) -> Arc<Hub> {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(hub) = all.hubs.get(session).and_then(Weak::upgrade) {
            return hub;
        }
        if all.hubs.len() >= all.sweep_at.max(SWEEP_AT) {
            all.hubs.retain(|_, hub| hub.strong_count() > 0);
            all.sweep_at = all.hubs.len() * 2;
        }
        let hub = Arc::new(Hub {
            sender: broadcast::Sender::new(BEHIND_MAX),
            last_seq: AtomicU64::new(0),
            stirred: watch::Sender::new(0),
        });
        all.hubs.insert(session.clone(), Arc::downgrade(&hub));
        hub
    }

    pub(super) fn follow(&self, session: &SessionId, after: u64) -> Reader {
        let hub = self.of(session);
        let reader = Reader {
            receiver: hub.sender.subscribe(),
            hub,
        };
        reader.has_seen(after);
        // Whoever asks the next time is told at once, where nobody waits for it now.
        self.came.notify_one();
        reader
    }

    /// Ready once somebody has come to follow a session since the last time this was asked.
    pub(super) async fn somebody_came(&self) {
        self.came.notified().await;
    }

    /// Tells those who follow a session of its events, if anybody does.
    pub(super) fn tell(&self, driver: &Driver) {
        if let Some(hub) = self.held(driver.session().id()).filter(|hub| hub.is_followed()) {
            hub.tell_until(0, driver.session());
        }
    }

    /// Wakes whoever waits here for something that this process does to a session.
    pub(super) fn stir(&self, session: &SessionId) {
        if let Some(hub) = self.held(session) {
            hub.stirred.send_modify(|count| *count = count.wrapping_add(1));
        }
    }

    fn held(&self, session: &SessionId) -> Option<Arc<Hub>> {
        let all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.hubs.get(session).and_then(Weak::upgrade)
    }

    /// The sessions that somebody follows now.
    pub(super) fn followed(&self) -> Vec<(SessionId, Arc<Hub>)> {
        let all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let alive = all
            .hubs
            .iter()
            .filter_map(|(id, hub)| Some((id.clone(), hub.upgrade()?)));
        alive.filter(|(_, hub)| hub.is_followed()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use aish_core::event::{Body, ResultEnd, ToolResult};
    use aish_core::id::CallId;
    use aish_core::message::Part;
    use futures_util::FutureExt as _;

    fn result(output: &str, parts: Vec<Part>) -> Box<Event> {
        Box::new(Event {
            session: SessionId::new("one"),
            seq: 7,
            turn: 1,
            time: 0,
            version: 1,
            content: "a summary".to_owned(),
            body: Body::ToolResult(ToolResult {
                tool_call_id: CallId::new("call"),
                name: "bash".to_owned(),
                output: output.to_owned(),
                success: true,
                parts,
                end: ResultEnd::Completed,
            }),
        })
    }

    fn ended(output: &str) -> Notice {
        Notice::CallEnded {
            call: CallId::new("call"),
            readable: "bash()".to_owned(),
            output: output.to_owned(),
            summary: "done".to_owned(),
            success: true,
            end: ResultEnd::Completed,
        }
    }

    /// SPEC 9.8: what a call gave is kept for readers once, as its event, and only where it is short, its images included.
    #[test]
    fn a_ring_stays_small() {
        let long = "x".repeat(EVENT_BYTES_MAX);
        let image = Part::Image {
            media_type: "image/png".to_owned(),
            data: long.clone(),
        };
        let hubs = Hubs::default();
        let hub = hubs.of(&SessionId::new("one"));
        let mut reader = hubs.follow(&SessionId::new("one"), 0);
        hub.forward(VecDeque::from([
            Notice::Text("hi".to_owned()),
            ended(&long),
            Notice::Recorded(result("short", Vec::new())),
            Notice::Recorded(result(&long, Vec::new())),
            Notice::Recorded(result("short", vec![image])),
        ]));
        let mut told = Vec::new();
        while let Some(Some(item)) = reader.next().now_or_never() {
            told.push(match &item.live {
                Live::Event(_) => "event",
                Live::Notice(_) => "notice",
                Live::Long(_) => "long",
                Live::Failed(_) => "failed",
            });
        }
        assert_eq!(told, ["notice", "event", "long", "long"]);
    }
}
