//! A place for one test: a home, a project directory and runs of the program that see nothing else of this machine.
//!
//! ```ignore
//! let server = FakeServer::script([Reply::text("hello")]);
//! let sandbox = Sandbox::with_model(&server);
//! let output = sandbox.run(&["-p", "hi"]).success();
//! assert_eq!(output.stdout, "hello\n");
//! ```

use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};
use tempfile::TempDir;

use super::fake_server::FakeServer;
use super::processes;
use super::pty::TerminalCommand;

/// How long one run of the program may take, in seconds; it is killed and the test fails after that.
const RUN_S_MAX: u64 = 60;

/// How long output may keep coming after the program's end, in seconds: from a child it should not have left behind.
const DRAIN_S_MAX: u64 = 5;

/// Bytes read from a pipe at once.
const PIPE_BYTES: usize = 64 << 10;

/// A home and a project in a temporary folder.
pub struct Sandbox {
    root: TempDir,
    environment: Vec<(String, String)>,
}

impl Sandbox {
    /// Without any model, and with none to be found.
    pub fn new() -> Self {
        let root = TempDir::with_prefix("aish-test-").expect("a temporary folder");
        for folder in ["home", "user", "project"] {
            std::fs::create_dir(root.path().join(folder)).expect("a folder in the sandbox");
        }
        Self {
            root,
            environment: Vec::new(),
        }
    }

    /// With the fake server as the one model, named `fake`.
    pub fn with_model(server: &FakeServer) -> Self {
        Self::with_base_url(&server.base_url())
    }

    /// With a model named `fake` behind that URL.
    pub fn with_base_url(base_url: &str) -> Self {
        Self::new().config(&format!(
            r#"default_model = "fake"

[models.fake]
provider = "openai-chat"
base_url = "{base_url}"
model = "fake"
"#
        ))
    }

    /// Adds to `config.toml`. Tables go last, so plain keys must come before a model is added.
    pub fn config(self, toml: &str) -> Self {
        let path = self.home().join("config.toml");
        let mut text = std::fs::read_to_string(&path).unwrap_or_default();
        text.push_str(toml);
        text.push('\n');
        std::fs::write(path, text).expect("write config.toml");
        self
    }

    /// Adds plain keys before everything that is in `config.toml` already.
    pub fn config_first(self, toml: &str) -> Self {
        let path = self.home().join("config.toml");
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        std::fs::write(path, format!("{toml}\n{text}")).expect("write config.toml");
        self
    }

    /// Sets a variable for every run.
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Writes a file of the project, with the folders it needs.
    pub fn file(self, path: &str, contents: impl AsRef<[u8]>) -> Self {
        let path = self.project().join(path);
        std::fs::create_dir_all(path.parent().expect("a path in the project")).expect("a folder of the project");
        std::fs::write(path, contents).expect("write a file of the project");
        self
    }

    /// `AISH_HOME`.
    pub fn home(&self) -> PathBuf {
        self.root.path().join("home")
    }

    /// The user's home directory, `HOME`.
    pub fn user(&self) -> PathBuf {
        self.root.path().join("user")
    }

    /// The working directory of the runs.
    pub fn project(&self) -> PathBuf {
        self.root.path().join("project")
    }

    /// Where the ledger is.
    pub fn ledger(&self) -> PathBuf {
        self.home().join("data").join("ledger.db")
    }

    /// The environment of the runs: nothing of the caller's but `PATH`.
    fn variables(&self) -> Vec<(String, String)> {
        let path = std::env::var("PATH").unwrap_or_else(|_| "/usr/bin:/bin".to_owned());
        let text = |path: PathBuf| path.to_string_lossy().into_owned();
        let fixed = [
            ("PATH", path),
            ("HOME", text(self.user())),
            ("AISH_HOME", text(self.home())),
            ("LANG", "C.UTF-8".to_owned()),
            ("TERM", "xterm-256color".to_owned()),
            ("SHELL", "/bin/bash".to_owned()),
            // Where it looks for models by itself (SPEC 7.7), a test must not find the developer's own.
            ("AISH_DISCOVER", "false".to_owned()),
        ];
        let fixed = fixed.map(|(name, value)| (name.to_owned(), value));
        fixed.into_iter().chain(self.environment.iter().cloned()).collect()
    }

    /// The program with these arguments, without a controlling terminal: what it may ask, nobody answers.
    pub fn command(&self, arguments: &[&str]) -> Command {
        // `setsid` replaces itself by the program, so the process id is the program's and leads its own group.
        let mut command = Command::new("setsid");
        command.arg(env!("CARGO_BIN_EXE_aish")).args(arguments);
        command.current_dir(self.project()).env_clear().envs(self.variables());
        command
    }

    /// Runs the program to its end, with no input.
    pub fn run(&self, arguments: &[&str]) -> Output {
        run_bounded(self.command(arguments), None)
    }

    /// Runs the program to its end with that text on a pipe as its input.
    pub fn run_with_input(&self, arguments: &[&str], input: impl AsRef<[u8]>) -> Output {
        run_bounded(self.command(arguments), Some(input.as_ref().to_owned()))
    }

    /// Starts the program, outputs on pipes; [`Running::finish`] waits for it. For runs that are killed or answered
    /// meanwhile.
    pub fn start(&self, arguments: &[&str]) -> Running {
        start(self.command(arguments), None)
    }

    /// Starts the program with a pipe as its input that stays open until what is given back is dropped.
    pub fn start_with_open_input(&self, arguments: &[&str]) -> (Running, ChildStdin) {
        let mut command = self.command(arguments);
        command.stdin(Stdio::piped());
        let mut running = start_as_is(command);
        let input = running.child.stdin.take().expect("a pipe");
        (running, input)
    }

    /// The program on a terminal.
    pub fn terminal(&self, arguments: &[&str]) -> TerminalCommand {
        self.in_terminal(TerminalCommand::aish(arguments))
    }

    /// Any program on a terminal, with this sandbox's environment and directory.
    pub fn in_terminal(&self, command: TerminalCommand) -> TerminalCommand {
        // Where this is missing, fish fills it at its first start, by a program that outlives it.
        let completions = self.user().join(".local/share/fish/generated_completions");
        std::fs::create_dir_all(completions).expect("a folder in the sandbox");
        let command = command.directory(self.project());
        self.variables()
            .iter()
            .fold(command, |command, (name, value)| command.env(name, value))
    }

    /// Waits until no process of this sandbox is left; fails naming those that are.
    pub fn assert_nothing_runs(&self) {
        let deadline = Instant::now() + super::default_wait();
        loop {
            let left = processes::belonging_to(self.root.path());
            if left.is_empty() {
                return;
            }
            assert!(Instant::now() < deadline, "left behind: {left:#?}");
            std::thread::sleep(Duration::from_millis(super::POLL_PAUSE_MS));
        }
    }

    /// The path of a file of the project.
    pub fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        self.project().join(path)
    }
}

/// How a run ended and what it wrote.
#[derive(Clone, Debug)]
pub struct Output {
    /// What went to standard output.
    pub stdout: String,
    /// What went to standard error.
    pub stderr: String,
    /// Exit code; `None` when a signal ended it.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
}

impl Output {
    /// Fails unless the exit code is this one.
    pub fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "exit code; the run was {self:#?}");
        self
    }

    /// Fails unless the exit code is 0.
    pub fn success(self) -> Self {
        self.exits(0)
    }

    /// Standard output as one JSON document.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("not JSON ({error}): {self:#?}"))
    }

    /// Standard output as JSON, a document a line.
    pub fn json_lines(&self) -> Vec<serde_json::Value> {
        let parse = |line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{line:?} is not JSON: {error}"));
        self.stdout.lines().map(parse).collect()
    }
}

/// A run that has not been waited for. Dropping it kills its whole process group.
pub struct Running {
    child: Child,
    stdout: Collected,
    stderr: Collected,
}

impl Running {
    /// Process id of the program.
    pub fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Sends a signal to the program and the children in its group.
    pub fn signal_group(&self, signal: Signal) {
        kill_process_group(self.pid(), signal).expect("signal the program");
    }

    /// Sends a signal to the program alone.
    pub fn signal(&self, signal: Signal) {
        rustix::process::kill_process(self.pid(), signal).expect("signal the program");
    }

    /// Waits until standard output holds that text.
    pub fn wait_for_stdout(&self, needle: &str) {
        self.stdout.wait_for("stdout", needle);
    }

    /// Waits until standard error holds that text.
    pub fn wait_for_stderr(&self, needle: &str) {
        self.stderr.wait_for("stderr", needle);
    }

    /// What has come on standard error until now.
    pub fn stderr_so_far(&self) -> String {
        self.stderr.wait(Duration::ZERO, |_| true).0
    }

    /// Waits for the end, within the limit of one run.
    pub fn finish(mut self) -> Output {
        let deadline = Instant::now() + Duration::from_secs(RUN_S_MAX);
        let status = loop {
            match self.child.try_wait().expect("wait for the program") {
                Some(status) => break Some(status),
                None if Instant::now() >= deadline => break None,
                None => std::thread::sleep(Duration::from_millis(super::POLL_PAUSE_MS)),
            }
        };
        if status.is_none() {
            self.kill();
        }
        let output = self.output(status);
        assert!(
            status.is_some(),
            "not finished after {RUN_S_MAX} s and killed; so far: {output:#?}"
        );
        output
    }

    fn output(&self, status: Option<ExitStatus>) -> Output {
        Output {
            stdout: self.stdout.whole("stdout"),
            stderr: self.stderr.whole("stderr"),
            code: status.and_then(|status| status.code()),
            signal: status.and_then(|status| status.signal()),
        }
    }

    fn kill(&mut self) {
        // Errors mean that there is nothing left to kill.
        let _ = kill_process_group(self.pid(), Signal::KILL);
        let _ = self.child.wait();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            self.kill();
        }
    }
}

/// Runs any command to its end, bounded in time.
pub fn run_bounded(command: Command, input: Option<Vec<u8>>) -> Output {
    start(command, input).finish()
}

fn start(mut command: Command, input: Option<Vec<u8>>) -> Running {
    command.stdin(if input.is_some() { Stdio::piped() } else { Stdio::null() });
    let mut running = start_as_is(command);
    if let (Some(bytes), Some(mut pipe)) = (input, running.child.stdin.take()) {
        // On a thread: a program that writes before it has read all would else wait for us, and we for it.
        std::thread::spawn(move || drop(pipe.write_all(&bytes)));
    }
    running
}

/// Starts a command with its input as it is set.
fn start_as_is(mut command: Command) -> Running {
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command
        .spawn()
        .unwrap_or_else(|error| panic!("run {command:?}: {error}"));
    let stdout = collect(child.stdout.take().expect("a pipe"));
    let stderr = collect(child.stderr.take().expect("a pipe"));
    Running { child, stdout, stderr }
}

/// What has come out of a pipe so far.
#[derive(Clone, Default)]
struct Collected(Arc<(Mutex<Pipe>, Condvar)>);

#[derive(Default)]
struct Pipe {
    bytes: Vec<u8>,
    ended: bool,
}

impl Collected {
    fn lock(&self) -> MutexGuard<'_, Pipe> {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut Pipe)) {
        change(&mut self.lock());
        self.0.1.notify_all();
    }

    /// Waits at most that long until it holds or the pipe has ended.
    fn wait(&self, within: Duration, holds: impl Fn(&str) -> bool) -> (String, bool) {
        let text = |pipe: &Pipe| String::from_utf8_lossy(&pipe.bytes).into_owned();
        let waits = |pipe: &mut Pipe| !pipe.ended && !holds(&text(pipe));
        let woken = self.0.1.wait_timeout_while(self.lock(), within, waits);
        let pipe = woken.unwrap_or_else(PoisonError::into_inner).0;
        (text(&pipe), pipe.ended)
    }

    fn wait_for(&self, name: &str, needle: &str) {
        let (text, _) = self.wait(super::default_wait(), |text| text.contains(needle));
        assert!(
            text.contains(needle),
            "waited in vain for {needle:?} on {name}: {text:?}"
        );
    }

    fn whole(&self, name: &str) -> String {
        let (text, ended) = self.wait(Duration::from_secs(DRAIN_S_MAX), |_| false);
        assert!(ended, "{name} is still open after the end: a child was left behind");
        text
    }
}

/// Reads a pipe to its end on a thread.
fn collect(mut pipe: impl Read + Send + 'static) -> Collected {
    let collected = Collected::default();
    let filling = collected.clone();
    std::thread::spawn(move || {
        let mut buffer = vec![0; PIPE_BYTES];
        // What came before an error is what there is to show.
        while let Ok(count @ 1..) = pipe.read(&mut buffer) {
            filling.change(|pipe| pipe.bytes.extend_from_slice(&buffer[..count]));
        }
        filling.change(|pipe| pipe.ended = true);
    });
    collected
}
