//! Ending commands when this process is killed and cannot do it itself.
//!
//! With the first command a small process is started that reads from a pipe which commands are running. Only this process
//! holds the writing end, so however it ends, even by `kill -9`, the pipe ends with it; the watcher then ends what is
//! still listed and itself. When nothing is listed it just ends.

use process_wrap::std::{ChildWrapper, CommandWrap, ProcessSession};
use rustix::process::Pid;
use std::io::Write;
use std::process::{ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A call is listed as `GROUP:TAG`. Its group is signalled, and whatever has left the group and still carries the tag in
/// its environment, twice for those that were being started the first time. Lines of other processes' environments are
/// never run, only searched for the tag. No signal that is meant for others ends the watcher, and no descriptor of ours
/// stays open in it.
const SCRIPT: &str = r#"
trap '' HUP INT QUIT TERM PIPE ALRM USR1 USR2 TSTP TTIN TTOU
exec 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&-
calls=' '
while read -r sign call; do
  case $sign in
    +) calls="$calls$call " ;;
    -) case $calls in
         *" $call "*) calls="${calls%%" $call "*} ${calls#*" $call "}" ;;
       esac ;;
  esac
done
signal() {
  for call in $calls; do
    kill -s "$1" -- "-${call%%:*}"
    for file in $(grep -lsF -e "${call#*:}" /proc/[0-9]*/environ); do
      id=${file#/proc/}
      kill -s "$1" -- "${id%/environ}"
    done
  done
}
case $calls in
  *[0-9]*)
    signal TERM
    signal CONT
    sleep 0.5
    signal KILL
    signal KILL ;;
esac
"#;
/// Where the watcher finds `grep` and `sleep`; nothing of a call's environment reaches it.
const PATH: &str = "/usr/bin:/bin";
/// How long a watcher may take to notice that its pipe has ended.
const END_WAIT_MS: u64 = 500;
/// How often it is looked at until then.
const END_TICK_MS: u64 = 1;

/// The process that watches this one; started with the first command and again should somebody have ended it. When the
/// last holder drops it, it ends and is waited for.
#[derive(Default)]
pub struct Watcher(Mutex<Option<Process>>);

struct Process {
    child: Box<dyn ChildWrapper>,
    pipe: Option<ChildStdin>,
}

/// A command that is listed; dropping it takes it off the list. Drop it before the command is waited for, while its id
/// can belong to nobody else.
pub struct Listed {
    watcher: Arc<Watcher>,
    call: String,
}

impl Watcher {
    /// Starts the watcher if it does not run, so that the next command can be listed without delay.
    pub fn prepare(&self) {
        let mut process = self.lock();
        if process.is_none() {
            *process = Process::start();
        }
    }

    /// Lists a command by its group and tag. Where no watcher can be started commands run all the same.
    pub fn list(self: &Arc<Self>, group: Pid, tag: &str) -> Listed {
        let call = format!("{}:{tag}", group.as_raw_nonzero());
        self.tell('+', &call);
        Listed {
            watcher: Arc::clone(self),
            call,
        }
    }

    fn tell(&self, sign: char, call: &str) {
        let mut process = self.lock();
        let told = process.as_mut().is_some_and(|process| process.tell(sign, call));
        if !told {
            // It was ended by somebody; the next command gets a new one.
            *process = None;
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Process>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Listed {
    fn drop(&mut self) {
        self.watcher.tell('-', &self.call);
    }
}

impl Process {
    fn start() -> Option<Self> {
        let mut command = Command::new("/bin/sh");
        command
            .args(["-c", SCRIPT])
            .current_dir("/")
            .env_clear()
            .env("PATH", PATH)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let mut wrapped = CommandWrap::from(command);
        wrapped.wrap(ProcessSession);
        let mut child = wrapped.spawn().ok()?.into_inner();
        let pipe = child.stdin().take();
        // A watcher that does not read, e.g. a stopped one, must not hold up a command.
        if let Some(pipe) = &pipe {
            let _ = rustix::io::ioctl_fionbio(pipe, true);
        }
        Some(Self { child, pipe })
    }

    /// True if the line was taken.
    fn tell(&mut self, sign: char, call: &str) -> bool {
        let line = format!("{sign} {call}\n");
        // Shorter than what a pipe takes in one piece, so it is written whole or not at all.
        let Some(pipe) = &mut self.pipe else { return false };
        pipe.write_all(line.as_bytes()).is_ok()
    }
}

impl Drop for Process {
    /// Lets it end, and waits for that, so that no zombie stays. It takes a millisecond, since nothing is listed any more;
    /// one that somebody has stopped is ended.
    fn drop(&mut self) {
        self.pipe = None;
        let deadline = Instant::now() + Duration::from_millis(END_WAIT_MS);
        while matches!(self.child.try_wait(), Ok(None)) {
            if Instant::now() >= deadline {
                let _ = self.child.start_kill();
                let _ = self.child.wait();
                return;
            }
            std::thread::sleep(Duration::from_millis(END_TICK_MS));
        }
    }
}
