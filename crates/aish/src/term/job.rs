//! Whether aish is somebody's job: whether anybody could continue it, were it stopped.
//!
//! The kernel drops the stop key for a process group that nobody looks after, called orphaned: of none of its members is the parent
//! in another group of the same session. Else a terminal whose only program is stopped would be dead for good. A program that
//! handles the key itself has to do the same
//! (POSIX.1-2024, 2.4.3: <https://pubs.opengroup.org/onlinepubs/9799919799/functions/V2_chap02.html#tag_16_04_03>).

use rustix::process::getpid;

/// Ancestors of one group that are looked at, e.g. of a script that calls scripts.
const ANCESTORS_MAX: usize = 64;
/// In `/proc/PID/stat`, counted from the field after the parenthesised name: the parent (field 4 of proc(5)).
const STAT_PARENT_FIELD: usize = 1;

/// How a process stands to others; ids as the kernel gives them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    parent: i32,
    group: i32,
    session: i32,
}

/// Whether a shell that knows of jobs started this process, and is still there.
pub(super) fn can_be_continued() -> bool {
    // Whoever leads the session is nobody's job. Linux tells that in its table of processes, and only there for a leader outside a container.
    #[cfg(not(target_os = "linux"))]
    if rustix::process::getsid(None).is_ok_and(|session| session == rustix::process::getpgrp()) {
        return false;
    }
    is_looked_after(getpid().as_raw_pid(), place)
}

/// The process group of this process, 0 where its leader cannot be seen from here.
///
/// Read from the table of processes: the system call gives 0 as well where the leader is outside this container, and the library has
/// no value for that (`rustix::process::Pid` is never zero).
pub(super) fn own_group() -> i32 {
    match place(getpid().as_raw_pid()) {
        Some(own) => own.group,
        None => rustix::process::getpgrp().as_raw_pid(),
    }
}

/// Climbs from a process to the first ancestor outside its group. Where the system does not tell, somebody is assumed to be there.
fn is_looked_after(process: i32, place: impl Fn(i32) -> Option<Place>) -> bool {
    let Some(own) = place(process) else {
        return true;
    };
    let mut parent = own.parent;
    for _ in 0..ANCESTORS_MAX {
        // A parent that cannot be seen is outside what we can see: a container, or nobody at all.
        let Some(above) = place(parent) else {
            return false;
        };
        if above.session != own.session {
            return false;
        }
        if above.group != own.group {
            return true;
        }
        parent = above.parent;
    }
    false
}

fn place(process: i32) -> Option<Place> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    parse(&stat)
}

/// The name may hold anything, parentheses and spaces too; what follows the last one is numbers.
fn parse(stat: &str) -> Option<Place> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut ids = fields.split_whitespace().skip(STAT_PARENT_FIELD).map(str::parse);
    let mut next = || ids.next()?.ok();
    Some(Place {
        parent: next()?,
        group: next()?,
        session: next()?,
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// Processes as `(id, parent, group, session)`; asks about the first.
    fn check(processes: &[(i32, i32, i32, i32)], expect: bool) {
        let place = |process: i32| {
            let found = processes.iter().find(|(id, ..)| *id == process);
            found.map(|&(_, parent, group, session)| Place { parent, group, session })
        };
        let (process, ..) = *processes.first().unwrap();
        assert_eq!(is_looked_after(process, place), expect, "{processes:?}");
    }

    /// SPEC 8.7: only what a shell can continue is stopped.
    #[test]
    fn somebodys_job() {
        // A shell's job; one in a pipeline that a script in the job began.
        check(&[(20, 10, 20, 10), (10, 1, 10, 10)], true);
        check(
            &[(22, 21, 20, 10), (21, 20, 20, 10), (20, 10, 20, 10), (10, 1, 10, 10)],
            true,
        );
        // The terminal's own program, and one that a script without jobs runs there.
        check(&[(20, 10, 20, 20), (10, 1, 10, 10)], false);
        check(&[(21, 20, 20, 20), (20, 10, 20, 20), (10, 1, 10, 10)], false);
        // Its shell has ended; its parent cannot be seen; ids that go round in a circle.
        check(&[(20, 1, 20, 10), (1, 0, 1, 1)], false);
        check(&[(20, 0, 20, 10)], false);
        check(&[(20, 20, 20, 10)], false);
        // Begun from outside the container: neither the parent nor who leads the session has an id here.
        check(&[(20, 0, 20, 0)], false);
        check(&[(20, 0, 0, 0)], false);
    }

    /// SPEC 8.7: a system that tells nothing is one where the key works as ever.
    #[test]
    fn where_nothing_is_known() {
        assert!(is_looked_after(20, |_| None));
    }

    /// As the kernel writes it, whatever the program is called.
    #[test]
    fn places() {
        let expect = Some(Place {
            parent: 7,
            group: 8,
            session: 9,
        });
        assert_eq!(parse("42 (a) b (c) S 7 8 9 34816 42\n"), expect);
        assert_eq!(parse("42 (aish) S 7 8"), None);
        assert_eq!(parse(""), None);
        // What the kernel says of ourselves by another way. An id of a group or a session may be 0 here, which the library cannot say.
        let this = place(getpid().as_raw_pid()).unwrap();
        let parent = rustix::process::getppid().map_or(0, |parent| parent.as_raw_pid());
        assert_eq!(this.parent, parent);
    }
}
