//! Who holds a lease, and whether that process still lives.
//!
//! An [`Owner`] is text with four fields, `boot/pid-namespace/pid/start`: the boot id of the kernel, the process-id
//! namespace (two containers may share a ledger and count processes apart), the process id, and the moment it started,
//! in the kernel's clock ticks since boot. A process id alone is given to another process sooner or later; the four
//! together are not.
//!
//! Only an owner of this boot and this namespace can be *known* to be dead, and only where `/proc` tells. Of any other
//! the lease has to run out.

use crate::Owner;
use std::fs;

/// Stands for a field that this system does not tell.
const UNKNOWN_FIELD: &str = "?";

/// In `/proc/PID/stat`, counted from the field after the parenthesised name: the state.
const STAT_STATE_FIELD: usize = 0;

/// Likewise: when the process started (field 22 of proc(5), the name being field 2).
const STAT_START_FIELD: usize = 19;

impl Owner {
    /// The process that asks. The same for every call of one process.
    pub fn this_process() -> Self {
        Self::of_process(std::process::id())
    }

    /// For messages: `process 1234`.
    pub fn describe(&self) -> String {
        match Identity::parse(&self.0) {
            Some(identity) => format!("process {}", identity.pid),
            None => self.0.clone(),
        }
    }

    /// A process of this boot and namespace.
    fn of_process(pid: u32) -> Self {
        let start = process_stat(pid).map_or_else(|| UNKNOWN_FIELD.to_owned(), |stat| stat.start);
        Self(format!("{}/{}/{pid}/{start}", boot_id(), pid_namespace()))
    }

    /// True only when it is certain that this process runs no more.
    pub(crate) fn is_known_dead(&self) -> bool {
        let Some(owner) = Identity::parse(&self.0) else {
            return false;
        };
        // Without /proc nobody looks alive.
        if process_stat(std::process::id()).is_none() {
            return false;
        }
        let comparable = |theirs: &str, ours: &str| theirs != UNKNOWN_FIELD && theirs == ours;
        if !comparable(owner.boot, &boot_id()) || !comparable(owner.namespace, &pid_namespace()) {
            return false;
        }
        match process_stat(owner.pid) {
            None => true,
            // A zombie is only waiting to be counted: it writes nothing any more.
            Some(stat) => stat.zombie || stat.start != owner.start,
        }
    }
}

/// The fields of an [`Owner`].
struct Identity<'a> {
    boot: &'a str,
    namespace: &'a str,
    pid: u32,
    start: &'a str,
}

impl<'a> Identity<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let mut fields = text.split('/');
        let identity = Self {
            boot: fields.next()?,
            namespace: fields.next()?,
            pid: fields.next()?.parse().ok()?,
            start: fields.next()?,
        };
        fields.next().is_none().then_some(identity)
    }
}

fn boot_id() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id")
        .map_or_else(|_| UNKNOWN_FIELD.to_owned(), |text| text.trim().to_owned())
}

fn pid_namespace() -> String {
    fs::read_link("/proc/self/ns/pid").map_or_else(
        |_| UNKNOWN_FIELD.to_owned(),
        |link| link.to_string_lossy().replace('/', "-"),
    )
}

/// What `/proc/PID/stat` says of a process.
struct ProcessStat {
    zombie: bool,
    start: String,
}

/// None when there is no such process, or no `/proc`.
fn process_stat(pid: u32) -> Option<ProcessStat> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name may hold spaces and parentheses of its own; the last one ends it.
    let (_, after_name) = text.rsplit_once(')')?;
    let fields: Vec<&str> = after_name.split_whitespace().collect();
    Some(ProcessStat {
        zombie: matches!(*fields.get(STAT_STATE_FIELD)?, "Z" | "X"),
        start: (*fields.get(STAT_START_FIELD)?).to_owned(),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use std::process::{Command, Stdio};

    /// SPEC 2.12: a driver is told from every other process, and knows itself.
    #[test]
    fn this_process_is_alive_and_the_same_each_time() {
        let owner = Owner::this_process();
        assert_eq!(owner, Owner::this_process());
        assert!(!owner.is_known_dead());
        assert_eq!(owner.describe(), format!("process {}", std::process::id()));
    }

    /// SPEC 2.12: a killed driver is known to be dead, reaped or not, and so is one whose number was given away.
    #[test]
    fn the_dead_are_known() {
        let mut child = Command::new("sleep").arg("1000").stdin(Stdio::null()).spawn().unwrap();
        let owner = Owner::of_process(child.id());
        assert!(!owner.is_known_dead());
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(owner.is_known_dead());

        let reused = Owner::this_process().0;
        let (fields, start) = reused.rsplit_once('/').unwrap();
        let earlier = start.parse::<u64>().unwrap() - 1;
        assert!(Owner(format!("{fields}/{earlier}")).is_known_dead());
    }

    /// SPEC 2.12: of another boot, another namespace or another kind of owner nothing is known.
    #[test]
    fn the_unknown_are_given_their_time() {
        for text in [
            format!("other-boot/{}/999999999/1", pid_namespace()),
            format!("{}/pid:[1]/999999999/1", boot_id()),
            format!("?/{}/999999999/1", pid_namespace()),
            "somebody".to_owned(),
            String::new(),
        ] {
            assert!(!Owner(text.clone()).is_known_dead(), "{text}");
        }
        assert_eq!(Owner("somebody".into()).describe(), "somebody");
    }
}
