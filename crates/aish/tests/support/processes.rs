//! Looking at processes from outside (Linux `/proc`): what a run has left behind, what memory it took.

use std::fs;
use std::path::Path;

/// A process that belongs to a sandbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// Its id.
    pub pid: u32,
    /// Its command line, spaces between arguments.
    pub command: String,
}

/// Every live process that has to do with that folder: in its environment, its arguments or its working directory. That
/// finds children which have left their group, their session and their parent.
pub fn belonging_to(folder: &Path) -> Vec<Process> {
    let needle = folder.to_string_lossy().into_owned();
    let entries = fs::read_dir("/proc").expect("/proc is mounted");
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    pids.filter_map(|pid| process(pid, &needle)).collect()
}

/// `None` as well for one that ends while it is looked at.
fn process(pid: u32, needle: &str) -> Option<Process> {
    if pid == std::process::id() {
        return None;
    }
    let read = |name: &str| fs::read(format!("/proc/{pid}/{name}")).unwrap_or_default();
    let command = String::from_utf8_lossy(&read("cmdline"))
        .replace('\0', " ")
        .trim()
        .to_owned();
    let environment = String::from_utf8_lossy(&read("environ")).into_owned();
    let directory = fs::read_link(format!("/proc/{pid}/cwd")).unwrap_or_default();
    let belongs =
        command.contains(needle) || environment.contains(needle) || directory.to_string_lossy().contains(needle);
    belongs.then_some(Process { pid, command })
}

/// Children of that process that have ended and that it has not waited for.
pub fn zombies_of(parent: u32) -> Vec<u32> {
    let entries = fs::read_dir("/proc").expect("/proc is mounted");
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    pids.filter(|pid| is_zombie_of(*pid, parent)).collect()
}

fn is_zombie_of(pid: u32, parent: u32) -> bool {
    state_and_parent(pid) == Some(('Z', parent))
}

/// True when the process waits for something, e.g. for a key; false as well when it has ended.
pub fn is_asleep(pid: u32) -> bool {
    state_and_parent(pid).is_some_and(|(state, _)| state == 'S')
}

fn state_and_parent(pid: u32) -> Option<(char, u32)> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // They follow the name, which is in parentheses and may itself hold any.
    let mut fields = stat.rsplit_once(") ")?.1.split(' ');
    Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}

/// The most memory that a live process has had resident, in KiB; `None` when it has ended.
pub fn peak_memory_kib(pid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix(" kB")?.parse().ok()
}
