//! Asking the user's shell from the thread that reads lines: the shell belongs to the loop, which answers while it waits for one.

use crate::shell::UserShell;
use crate::shell::known;
use std::sync::mpsc::{self, Receiver, SyncSender};
use tokio::sync::mpsc as queue;

/// Questions that wait at once: a newer one means that nobody waits for the older.
const QUESTIONS_MAX: usize = 4;

/// Where questions are put; one for each prompt.
#[derive(Clone)]
pub struct Desk {
    questions: queue::Sender<Question>,
}

/// What is asked there.
pub struct Questions {
    questions: queue::Receiver<Question>,
}

struct Question {
    /// The line the shell runs.
    line: String,
    reply: SyncSender<Vec<u8>>,
}

/// A desk, and what is put on it.
pub fn desk() -> (Desk, Questions) {
    let (sender, receiver) = queue::channel(QUESTIONS_MAX);
    (Desk { questions: sender }, Questions { questions: receiver })
}

impl Desk {
    /// Asks; the answer is what the line printed. Nobody answers where the receiver is disconnected, and `None` where there is no
    /// room for a question.
    pub fn ask(&self, line: String) -> Option<Receiver<Vec<u8>>> {
        let (reply, answer) = mpsc::sync_channel(1);
        self.questions.try_send(Question { line, reply }).ok()?;
        Some(answer)
    }
}

/// Answers what is asked, and beside it brings up to date what the shell can run ([`known::told`]). It never ends; dropped, it
/// leaves the question at hand without an answer.
pub async fn attend(shell: Option<&mut UserShell>, questions: &mut Questions) {
    let Some(shell) = shell else {
        return std::future::pending().await;
    };
    let mut is_told = false;
    loop {
        let question = tokio::select! {
            biased;
            question = questions.questions.recv() => question,
            () = known::told(shell), if !is_told => {
                is_told = true;
                continue;
            }
        };
        let Some(question) = question else {
            return std::future::pending().await;
        };
        if let Some(output) = shell.ask(&question.line).await {
            // Whoever asked may have gone on.
            let _ = question.reply.try_send(output);
        }
    }
}
