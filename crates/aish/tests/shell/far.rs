//! A shell on another machine, by `ssh`: a server of the test's own, on this one.

use crate::person::{ALL, Desk};
use crate::support::pty::key;
use crate::support::{default_wait, poll_until};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Where Debian has the server, which is in no user's `PATH`.
const SERVER: &str = "/usr/sbin/sshd";
/// What the key is locked with; nobody may see it anywhere.
const SECRET: &str = "far-hunter2-far";
/// What the shell over there shows as its prompt.
const PROMPT: &str = "far>";

/// A server that lets in whoever has the key.
struct Server {
    process: Child,
    folder: tempfile::TempDir,
    port: u16,
}

impl Server {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        make_key(&folder.path().join("host"), "");
        make_key(&folder.path().join("key"), SECRET);
        if rustix::process::geteuid().is_root() {
            // Where the server of the system keeps nothing; made at its start elsewhere.
            std::fs::create_dir_all("/run/sshd").unwrap();
        }
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let at = |name: &str| folder.path().join(name).display().to_string();
        let process = Command::new(SERVER)
            .args(["-D", "-f", "/dev/null", "-p", &port.to_string(), "-h", &at("host")])
            .args([
                "-o",
                "ListenAddress=127.0.0.1",
                "-o",
                "StrictModes=no",
                "-o",
                "PidFile=none",
            ])
            .args(["-o", "UsePAM=no", "-o", "PasswordAuthentication=no"])
            .args(["-o", &format!("AuthorizedKeysFile={}", at("key.pub"))])
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        poll_until("the server", default_wait(), || {
            TcpStream::connect(("127.0.0.1", port)).ok()
        });
        Self { process, folder, port }
    }

    /// What a person has in their configuration to be let in.
    fn client(&self) -> String {
        format!(
            "Host box\n HostName 127.0.0.1\n Port {}\n UserKnownHostsFile known\n IdentityFile {}\n IdentitiesOnly yes\n \
             IdentityAgent none\n RequestTTY force\n RemoteCommand PS1='{PROMPT} ' exec sh\n",
            self.port,
            self.folder.path().join("key").display(),
        )
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn make_key(path: &Path, secret: &str) {
    let made = Command::new("ssh-keygen")
        .args(["-q", "-t", "ed25519", "-N", secret, "-f"])
        .arg(path)
        .status();
    assert!(made.unwrap().success());
}

/// SPEC 8.2: a shell far away: the question about its key, a secret that is seen nowhere, lines, a window that changes its size,
/// Ctrl-C over there, the end of the connection by `~.`, and by `exit`.
#[test]
fn ssh() {
    let server = Server::start();
    for inner in ALL {
        let client = server.client();
        let person = Desk::with(*inner)
            .sandbox(move |sandbox| sandbox.file("client", client))
            .sit_down();
        let is_there = |screen: &vt100::Screen| screen.contents().trim_end().ends_with(PROMPT);
        let lets_in = || {
            person.sees("Enter passphrase");
            person.terminal.send(SECRET);
            person.terminal.send(key::ENTER);
            person.terminal.wait_for("the far prompt", is_there);
        };
        person.enters("ssh -F client box");
        person.sees("(yes/no/[fingerprint])?");
        person.terminal.send("yes\r");
        lets_in();
        person.terminal.send("stty size\r");
        person.sees_line("24 80");
        person.terminal.resize(20, 70);
        person.presses_until("stty size\r", "the new size", |screen| {
            screen.contents().contains("20 70")
        });
        person.terminal.send("echo th'er'e; sleep 1000\r");
        person.sees_line("there");
        person.presses_until(key::CTRL_C, "the far prompt", is_there);
        person.presses_until("\r~.", "the end", |screen| screen.contents().contains("Connection to"));
        person.wait_for_prompt();
        assert_eq!(person.last("ssh -F client box").status, Some(255), "{inner:?}");
        person.terminal.send("\x15clear\r");
        person.terminal.wait_for("a clear screen", |screen| {
            crate::person::is_at_prompt(screen) && !screen.contents().contains("Enter passphrase")
        });
        person.enters("ssh -F client box");
        lets_in();
        person.terminal.send("exit 7\r");
        person.wait_for_prompt();
        assert_eq!(person.last("ssh -F client box").status, Some(7), "{inner:?}");
        person.terminal.assert_never_wrote(SECRET.as_bytes());
        person.leaves();
    }
}
