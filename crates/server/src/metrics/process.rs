//! What the system says of this process, where it says it in `/proc`.

use super::text::Page;
use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

/// Writes what is known: names and units are those that all Prometheus clients give a process.
pub(super) fn write(page: &mut Page, began: SystemTime) {
    let began_s = began
        .duration_since(UNIX_EPOCH)
        .map_or(0.0, |since| since.as_secs_f64());
    page.gauge(
        "process_start_time_seconds",
        "When the process began to serve, since the Unix epoch.",
    );
    page.sample(&[], began_s);
    if let Some(bytes) = resident_bytes() {
        page.gauge("process_resident_memory_bytes", "Memory in RAM.");
        page.sample(&[], bytes);
    }
    if let Ok(open) = fs::read_dir("/proc/self/fd") {
        page.gauge("process_open_fds", "Open file descriptors.");
        page.sample(&[], open.count());
    }
}

fn resident_bytes() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024)
}
