//! The processes of a shell's session, as the system lists them.

use rustix::process::{Pid, Signal, kill_process};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// What the system puts behind the name of a file or directory that is no more.
const DELETED: &[u8] = b" (deleted)";

/// One process.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Process {
    pub id: Pid,
    /// What it runs; `None` where that is not ours to know.
    pub program: Option<PathBuf>,
}

/// The program that a process runs; `None` where it has ended, or is somebody else's.
pub fn program(id: Pid) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{}/exe", id.as_raw_nonzero())).ok()
}

/// Where a process works; `None` where it has ended, or is somebody else's. What was deleted keeps its name.
pub fn directory(id: Pid) -> Option<PathBuf> {
    let path = fs::read_link(format!("/proc/{}/cwd", id.as_raw_nonzero())).ok()?;
    let name = named(&path);
    Some(if name == path || path.exists() { path } else { name })
}

/// A file or directory by the name that it has, or had.
pub fn named(path: &Path) -> PathBuf {
    let bytes = path.as_os_str().as_bytes();
    PathBuf::from(OsStr::from_bytes(bytes.strip_suffix(DELETED).unwrap_or(bytes)))
}

/// Those that live in the session of that shell, without the shell, and that began `since_ticks` after the system's start or
/// later.
pub fn of_session(shell: Pid, since_ticks: u64) -> Vec<Process> {
    let is_its =
        |stat: &Stat| stat.session == shell.as_raw_nonzero().get() && stat.start_ticks >= since_ticks && stat.is_alive;
    let others = all().filter(|(id, stat)| *id != shell && is_its(stat));
    others
        .map(|(id, _)| Process {
            id,
            program: program(id),
        })
        .collect()
}

/// Those of that group, which share a terminal's foreground.
pub fn of_group(group: Pid) -> Vec<Pid> {
    let its = all().filter(|(_, stat)| stat.group == group.as_raw_nonzero().get());
    its.map(|(id, _)| id).collect()
}

/// All there are; none where the system does not list them.
fn all() -> impl Iterator<Item = (Pid, Stat)> {
    let entries = fs::read_dir("/proc").into_iter().flatten();
    entries.filter_map(|entry| {
        let id = Pid::from_raw(entry.ok()?.file_name().to_str()?.parse().ok()?)?;
        let stat = fs::read(format!("/proc/{}/stat", id.as_raw_nonzero())).ok()?;
        Some((id, stat_of(&String::from_utf8_lossy(&stat))?))
    })
}

/// Whether a process was told to outlive its terminal (`nohup`); so for one that has ended.
pub fn ignores_hang_up(id: Pid) -> bool {
    let Ok(status) = fs::read_to_string(format!("/proc/{}/status", id.as_raw_nonzero())) else {
        return true;
    };
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    // Bit 0 is signal 1, which is this one.
    ignored.is_none_or(|mask| u64::from_str_radix(mask.trim(), 16).is_ok_and(|mask| mask & 1 == 1))
}

/// Now, in ticks since the system's start.
pub fn now_ticks() -> u64 {
    let uptime = fs::read_to_string("/proc/uptime").unwrap_or_default();
    let hundredths: String = uptime
        .chars()
        .take_while(|c| *c != ' ')
        .filter(char::is_ascii_digit)
        .collect();
    hundredths.parse::<u64>().unwrap_or(0) * TICKS_PER_S / 100
}

/// Ticks in which the system tells when a process began; the same on every machine we run on.
pub const TICKS_PER_S: u64 = 100;

/// As a terminal that is closed does to the program that has it, and wakes one that is stopped.
pub fn hang_up(id: Pid) {
    let _ = kill_process(id, Signal::HUP);
    let _ = kill_process(id, Signal::CONT);
}

/// What is read of `/proc/ID/stat`.
#[derive(Debug, PartialEq, Eq)]
struct Stat {
    group: i32,
    session: i32,
    start_ticks: u64,
    is_alive: bool,
}

/// The name in parentheses may hold anything, so fields count from the last one; the first behind it is the state.
fn stat_of(stat: &str) -> Option<Stat> {
    let (_, fields) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = fields.split_whitespace().collect();
    Some(Stat {
        group: fields.get(2)?.parse().ok()?,
        session: fields.get(3)?.parse().ok()?,
        start_ticks: fields.get(19)?.parse().ok()?,
        is_alive: !matches!(*fields.first()?, "Z" | "X" | "x"),
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// Looks for a process that was just started, 5 ms apart.
    const POLLS_MAX: usize = 4_000;

    /// SPEC 8.7: a name made to look like the fields behind it misleads nobody.
    #[test]
    fn names_mislead_nobody() {
        let stat = "7 (a) R 1 1) S 3 4 5 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 987654 1000 10";
        let expect = Stat {
            group: 4,
            session: 5,
            start_ticks: 987_654,
            is_alive: true,
        };
        assert_eq!(stat_of(stat), Some(expect));
        assert!(!stat_of(&stat.replace(") S", ") Z")).unwrap().is_alive);
        assert_eq!(stat_of("7 (x) S 1"), None);
        assert_eq!(stat_of(""), None);
    }

    /// SPEC 8.7: a process that runs is found in its session, and began before now.
    #[test]
    fn of_a_session() {
        let mut leader = std::process::Command::new("setsid")
            .args(["sh", "-c", "sleep 100 & wait"])
            .spawn()
            .unwrap();
        let session = Pid::from_child(&leader);
        let found = (0..POLLS_MAX).find_map(|_| {
            std::thread::sleep(std::time::Duration::from_millis(5));
            of_session(session, 0).into_iter().next()
        });
        assert!(of_session(session, now_ticks() + TICKS_PER_S).is_empty());
        assert!(of_group(session).contains(&session));
        rustix::process::kill_process_group(session, rustix::process::Signal::KILL).unwrap();
        leader.wait().unwrap();
        assert!(found.is_some_and(|process| process.id != session));
    }
}
