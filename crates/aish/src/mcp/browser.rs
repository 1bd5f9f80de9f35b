//! Opens an address in the person's browser: as one argument of a program, never through a shell (SPEC 6.11).
//!
//! Callers have asked the person, and have held the address against [`super::address::Address`].

use std::io;
use std::process::Stdio;
use std::time::Duration;
use tokio::process::Command;

/// Says which browser a person wants.
const BROWSER_VARIABLE: &str = "BROWSER";
/// Opens an address in whatever the desktop is set to.
const DESKTOP_OPENER: &str = "xdg-open";
/// How long a browser is watched for: one that fails does so at once.
const WATCH_MS: u64 = 2_000;

/// Opens it, with that environment and no other. Returns when the browser is there, or has handed the address on.
///
/// # Errors
/// No browser was started; one line, not escaped.
pub async fn open(url: &str, environment: &[(String, String)]) -> Result<(), String> {
    let wanted = environment
        .iter()
        .find(|(name, value)| name == BROWSER_VARIABLE && !value.trim().is_empty());
    let words = wanted.map_or(DESKTOP_OPENER, |(_, value)| value);
    let mut words = words.split_whitespace();
    let program = words.next().unwrap_or(DESKTOP_OPENER);
    let mut command = Command::new(program);
    command
        .args(words)
        .arg(url)
        .env_clear()
        .envs(environment.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        // A key that is pressed for aish is not meant for it.
        .process_group(0);
    let failed = |error: io::Error| format!("{program}: {error}");
    let mut browser = command.spawn().map_err(failed)?;
    match tokio::time::timeout(Duration::from_millis(WATCH_MS), browser.wait()).await {
        Ok(Ok(status)) if status.success() => Ok(()),
        Ok(Ok(status)) => Err(format!("{program}: {status}")),
        Ok(Err(error)) => Err(failed(error)),
        // It is the browser itself: it stays.
        Err(_) => Ok(()),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;

    async fn opened_with(browser: &str, url: &str) -> Result<(), String> {
        open(url, &[(BROWSER_VARIABLE.to_owned(), browser.to_owned())]).await
    }

    /// SPEC 6.11: whatever is in an address, no shell reads it: it is one argument.
    #[tokio::test]
    async fn one_argument() {
        let url = "http://127.0.0.1/$(exit 1);`x`&a b";
        opened_with("/usr/bin/test -n", url).await.unwrap();
        assert!(
            opened_with("/usr/bin/test -z", url)
                .await
                .unwrap_err()
                .contains("exit status: 1")
        );
        assert!(
            opened_with("/nowhere/browser", url)
                .await
                .unwrap_err()
                .contains("/nowhere/browser")
        );
    }
}
