//! Finding and ending every process a command started.
//!
//! A command runs as the leader of a session and process group of its own, so one signal reaches most of what it
//! started. What has left the group (`setsid`, a daemon) is found in `/proc` by one of: a parent that is in the tree, the
//! session, or the tag every process of the command carries in its environment ([`TAG_NAME`]). The tag survives what
//! breaks the other two: a process whose parents have all ended.
//!
//! The alternative, making this process a child subreaper, would adopt the orphans of *everything* it runs, the user's
//! own shell and its daemons among them, with no way to tell whose they are, and would leave each to be reaped here. A
//! process that both cleans its environment and outlives its parents escapes; one that runs as somebody else cannot be
//! ended by us in any case.

use bstr::ByteSlice;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open, pidfd_send_signal};
use std::collections::HashSet;
use std::fs;
use std::time::{Duration, Instant};

/// The environment variable that marks a command's processes. Nested commands add theirs after a colon ([`nested_tag`]).
pub const TAG_NAME: &str = "AISH_CALL";
/// For this long after a command started, no process of it can have a lower id than it has: ids are given out in rising
/// order and cannot come round that fast.
const ASCENDING_IDS_S: u64 = 1;
/// Looks at the list of processes until one is undisturbed; on a machine where something always starts, the last counts.
const LOOKS_MAX: usize = 8;
/// Between asking processes to end and ending them.
const TERM_GRACE_MS: u64 = 500;
/// How long killed processes are waited for; one that the kernel holds cannot be ended sooner by anybody.
const KILL_WAIT_MS: u64 = 2_000;
/// How often stragglers, which give no notice of their end, are looked for.
pub const STRAGGLER_TICK_MS: u64 = 5;
/// The flag of a kernel thread, which never has an environment (`PF_KTHREAD` of the kernel).
const KERNEL_THREAD_FLAG: u64 = 0x0020_0000;

/// One command's processes.
#[derive(Debug)]
pub struct Tree {
    leader: Pid,
    tag: String,
    started: Instant,
    /// When the leader started, in ticks since boot; nothing of the tree is older.
    start_min: u64,
}

/// A process as `/proc` shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Process {
    id: i32,
    parent: i32,
    group: i32,
    session: i32,
    /// Ticks since boot; with the id it names one process for good.
    start: u64,
    is_alive: bool,
    /// It has work to do: it runs, or waits for a processor or a disk.
    is_busy: bool,
    /// It has left its old program and not begun the new one, or is about to end: it has no environment to read.
    has_no_memory: bool,
}

impl Tree {
    /// The processes of a command whose first one was just started with the tag in its environment.
    pub fn new(leader: Pid, tag: String) -> Self {
        Self {
            leader,
            tag,
            started: Instant::now(),
            start_min: process_of(leader.as_raw_nonzero().get()).map_or(0, |leader| leader.start),
        }
    }

    /// Signals the group and every straggler. Call it only while the leader has not been waited for: until then its id
    /// belongs to nobody else.
    pub fn signal(&self, signal: Signal) {
        // No such group any more is as good as ended.
        let _ = kill_process_group(self.leader, signal);
        for process in self.others().members {
            signal_process(&process, signal);
        }
    }

    /// True when anything but the leader is alive, or may be.
    pub fn has_others(&self) -> bool {
        let found = self.others();
        !found.members.is_empty() || found.has_doubtful
    }

    /// True when something but the leader has work to do.
    pub fn has_busy_others(&self) -> bool {
        let found = self.others();
        found.members.iter().any(|process| process.is_busy) || found.has_doubtful
    }

    /// The living processes of the tree without its leader.
    fn others(&self) -> Found {
        let mut found = Found::default();
        for _ in 0..LOOKS_MAX {
            let newest = newest_process_id();
            if newest == Some(self.leader_id()) {
                // Nothing at all was started since: the usual case of a command that runs one program.
                return Found::default();
            }
            found = self.look(newest);
            // A process that forks and exits while the list is read can hide its child; if nothing was started anywhere
            // in the meantime, the list is whole.
            if !found.members.is_empty() || newest_process_id() == newest {
                break;
            }
        }
        found
    }

    /// One look at the list of processes.
    fn look(&self, newest: Option<i32>) -> Found {
        let leader = self.leader_id();
        let is_recent = self.started.elapsed() < Duration::from_secs(ASCENDING_IDS_S);
        let id_min = if is_recent && newest.is_some_and(|newest| newest > leader) {
            leader
        } else {
            0
        };
        let is_candidate = |process: &Process| process.is_alive && process.start >= self.start_min;
        let all: Vec<Process> = processes(id_min).into_iter().filter(is_candidate).collect();
        let mut ids: HashSet<i32> = HashSet::from([leader]);
        let mut has_doubtful = false;
        for process in &all {
            match self.tag_of(process) {
                Tagged::Yes => {
                    ids.insert(process.id);
                }
                Tagged::No => {}
                Tagged::InDoubt => has_doubtful = true,
            }
        }
        // A child can be listed before its parent, so look again until nothing new is found.
        loop {
            let count = ids.len();
            for process in &all {
                if ids.contains(&process.parent) || process.group == leader || process.session == leader {
                    ids.insert(process.id);
                }
            }
            if ids.len() == count {
                break;
            }
        }
        let is_member = |process: &Process| process.id != leader && ids.contains(&process.id);
        Found {
            members: all.into_iter().filter(is_member).collect(),
            has_doubtful,
        }
    }

    /// An empty environment means: none at all, or a moment between two programs, or a process on its way out. Which of
    /// them is told by looking again at the process after its environment.
    fn tag_of(&self, process: &Process) -> Tagged {
        for _ in 0..LOOKS_MAX {
            match fs::read(format!("/proc/{}/environ", process.id)) {
                Err(_) => return Tagged::No,
                Ok(environment) if environment.contains_str(&self.tag) => return Tagged::Yes,
                Ok(environment) if !environment.is_empty() => return Tagged::No,
                Ok(_) => {}
            }
            match process_of(process.id).filter(|now| now.is_alive && now.start == process.start) {
                None => return Tagged::No,
                Some(now) if now.has_no_memory => return Tagged::InDoubt,
                Some(_) => {}
            }
        }
        Tagged::No
    }

    fn leader_id(&self) -> i32 {
        self.leader.as_raw_nonzero().get()
    }
}

/// A tag that no other command has, now or later.
///
/// # Errors
/// The system gives no randomness.
pub fn new_tag() -> Result<String, getrandom::Error> {
    Ok(format!("{}-{:016x}", std::process::id(), getrandom::u64()?))
}

/// The value of [`TAG_NAME`] for a command: its tag, after that of a command which it is run inside of.
pub fn nested_tag(outer: Option<&str>, tag: &str) -> String {
    match outer {
        Some(outer) => format!("{outer}:{tag}"),
        None => tag.to_owned(),
    }
}

/// How far the ending of a tree has come.
#[derive(Clone, Copy, Debug)]
pub enum Ending {
    /// Everything was asked to end, and will be killed then.
    Asked(Instant),
    /// Everything was killed, and is given up on then.
    Killed(Instant),
}

impl Ending {
    /// Asks every process to end.
    pub fn ask(tree: &Tree) -> Self {
        tree.signal(Signal::TERM);
        // A stopped process takes the signal only when it goes on.
        tree.signal(Signal::CONT);
        Self::Asked(Instant::now() + Duration::from_millis(TERM_GRACE_MS))
    }

    /// Kills every process.
    pub fn kill(tree: &Tree) -> Self {
        tree.signal(Signal::KILL);
        Self::Killed(Instant::now() + Duration::from_millis(KILL_WAIT_MS))
    }

    /// When it is time to [`advance`](Self::advance) unless the leader exits before.
    pub fn next_look(self) -> Instant {
        let (Self::Asked(until) | Self::Killed(until)) = self;
        until.min(Instant::now() + Duration::from_millis(STRAGGLER_TICK_MS))
    }

    /// Goes on where it is time to. `None` when nothing of the tree is left, or nothing that can be ended.
    pub fn advance(self, tree: &Tree, has_leader_exited: bool) -> Option<Self> {
        if has_leader_exited && !tree.has_others() {
            return None;
        }
        let now = Instant::now();
        match self {
            Self::Asked(until) if now >= until => Some(Self::kill(tree)),
            Self::Asked(_) => Some(self),
            Self::Killed(until) => {
                // What was being started while the last signal went out is caught by this one.
                tree.signal(Signal::KILL);
                (now < until).then_some(self)
            }
        }
    }
}

/// What a look at the processes gave.
#[derive(Debug, Default)]
struct Found {
    members: Vec<Process>,
    /// Some process, perhaps one of the tree, was just being replaced by another program or ending.
    has_doubtful: bool,
}

/// Whether a process carries the tag.
enum Tagged {
    Yes,
    No,
    /// Its environment is not there for a moment.
    InDoubt,
}

/// Signals one process, unless its id has been given to another since it was listed.
fn signal_process(process: &Process, signal: Signal) {
    let Some(id) = Pid::from_raw(process.id) else { return };
    let Ok(handle) = pidfd_open(id, PidfdFlags::empty()) else {
        return;
    };
    // The handle names whatever has the id now; only if that is still the one listed may it be signalled.
    if process_of(process.id).is_some_and(|now| now.start == process.start) {
        let _ = pidfd_send_signal(&handle, signal);
    }
}

/// The id that was given out last, from the fifth field of `/proc/loadavg`.
fn newest_process_id() -> Option<i32> {
    let text = fs::read_to_string("/proc/loadavg").ok()?;
    text.split_whitespace().nth(4)?.parse().ok()
}

/// Every process with an id above `id_min`.
fn processes(id_min: i32) -> Vec<Process> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    let ids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
    ids.filter(|id| *id > id_min).filter_map(process_of).collect()
}

fn process_of(id: i32) -> Option<Process> {
    let stat = fs::read(format!("/proc/{id}/stat")).ok()?;
    parse_stat(id, &stat.to_str_lossy())
}

/// Reads `/proc/ID/stat` (proc(5)): the name in parentheses may hold anything, so fields count from the last one. The
/// first after it is field 3 of the manual.
fn parse_stat(id: i32, stat: &str) -> Option<Process> {
    let (_, fields) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = fields.split_whitespace().collect();
    let field = |number: usize| fields.get(number - 3).copied();
    let number = |field: Option<&str>| field?.parse::<u64>().ok();
    let id_at = |number: usize| field(number)?.parse::<i32>().ok();
    let is_kernel_thread = number(field(9))? & KERNEL_THREAD_FLAG != 0;
    Some(Process {
        id,
        parent: id_at(4)?,
        group: id_at(5)?,
        session: id_at(6)?,
        start: number(field(22))?,
        is_alive: !matches!(field(3)?, "Z" | "X" | "x"),
        is_busy: matches!(field(3)?, "R" | "D"),
        // Where the environment ends; 0 until the new program has one.
        has_no_memory: !is_kernel_thread && number(field(51)) == Some(0),
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// SPEC 4.4: a name made to look like the fields after it misleads nobody.
    #[test]
    fn stat_is_read_from_the_end_of_the_name() {
        let stat = "7 (a) R 1 1) S 3 4 5 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 987654 1000 10";
        let process = parse_stat(7, stat).unwrap();
        assert_eq!(
            (process.parent, process.group, process.session, process.start),
            (3, 4, 5, 987_654)
        );
        assert!(process.is_alive);
        assert!(!parse_stat(7, &stat.replace(") S", ") Z")).unwrap().is_alive);
        assert_eq!(parse_stat(7, "7 (x"), None);
        assert_eq!(parse_stat(7, "7 (x) S 1"), None);
    }

    /// SPEC 4.4: this process finds itself as the kernel shows it.
    #[test]
    fn own_process_is_found() {
        let id = i32::try_from(std::process::id()).unwrap();
        let process = process_of(id).unwrap();
        assert!(process.is_alive && processes(id - 1).contains(&process));
        assert!(newest_process_id().is_some());
    }
}
