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

/// The environment variable that marks a command's processes. Nested commands add theirs after a colon.
pub(super) const TAG_NAME: &str = "AISH_CALL";
/// For this long after a command started, no process of it can have a lower id than it has: ids are given out in rising
/// order and cannot come round that fast.
const ASCENDING_IDS_S: u64 = 1;

/// One command's processes.
#[derive(Debug)]
pub(super) struct Tree {
    leader: Pid,
    tag: String,
    started: Instant,
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
}

impl Tree {
    /// The processes of a command whose first one was just started with the tag in its environment.
    pub(super) fn new(leader: Pid, tag: String) -> Self {
        Self {
            leader,
            tag,
            started: Instant::now(),
        }
    }

    /// Signals the group and every straggler. Call it only while the leader has not been waited for: until then its id
    /// belongs to nobody else.
    pub(super) fn signal(&self, signal: Signal) {
        // No such group any more is as good as ended.
        let _ = kill_process_group(self.leader, signal);
        for process in self.others() {
            signal_process(&process, signal);
        }
    }

    /// True when anything but the leader is alive.
    pub(super) fn has_others(&self) -> bool {
        !self.others().is_empty()
    }

    /// The living processes of the tree without its leader.
    fn others(&self) -> Vec<Process> {
        let leader = self.leader.as_raw_nonzero().get();
        let newest = newest_process_id();
        if newest == Some(leader) {
            // Nothing at all was started since: the usual case of a command that runs one program.
            return Vec::new();
        }
        let is_recent = self.started.elapsed() < Duration::from_secs(ASCENDING_IDS_S);
        let id_min = if is_recent && newest.is_some_and(|newest| newest > leader) {
            leader
        } else {
            0
        };
        let all = processes(id_min);
        let mut members: HashSet<i32> = HashSet::from([leader]);
        // A child can be listed before its parent, so look again until nothing new is found.
        loop {
            let count = members.len();
            for process in &all {
                let is_member =
                    members.contains(&process.parent) || process.group == leader || process.session == leader;
                if is_member {
                    members.insert(process.id);
                }
            }
            if members.len() > count {
                continue;
            }
            let tagged = all
                .iter()
                .filter(|process| !members.contains(&process.id) && self.is_tagged(process.id));
            let tagged: Vec<i32> = tagged.map(|process| process.id).collect();
            if tagged.is_empty() {
                break;
            }
            members.extend(tagged);
        }
        let is_other = |process: &Process| process.is_alive && process.id != leader && members.contains(&process.id);
        all.into_iter().filter(is_other).collect()
    }

    fn is_tagged(&self, id: i32) -> bool {
        fs::read(format!("/proc/{id}/environ")).is_ok_and(|environment| environment.contains_str(&self.tag))
    }
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

/// Reads `/proc/ID/stat` (proc(5)): the name in parentheses may hold anything, so fields count from the last one.
fn parse_stat(id: i32, stat: &str) -> Option<Process> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace();
    let state = fields.next()?;
    Some(Process {
        id,
        parent: fields.next()?.parse().ok()?,
        group: fields.next()?.parse().ok()?,
        session: fields.next()?.parse().ok()?,
        // Field 22 of the file; the four before it here are 3 to 6.
        start: fields.nth(15)?.parse().ok()?,
        is_alive: !matches!(state, "Z" | "X" | "x"),
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
