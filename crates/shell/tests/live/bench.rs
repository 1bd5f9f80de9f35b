//! A real shell on the test's own terms: a home of its own, start-up files as a test wants them, and what it showed.

use aish_shell::{Ended, Ran, Relay, Screen, Setup, Shell, Size, StartUp};
use std::ffi::OsString;
use std::io::{PipeWriter, Write as _};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// The shells that are tried; each must be installed.
pub const SHELLS: [&str; 3] = ["bash", "zsh", "fish"];
/// How long anything may take before the test gives up.
pub const PATIENCE: Duration = Duration::from_secs(60);
/// Where a fish that has never run would else read all manual pages in the background.
const FISH_HAS_RUN: &str = ".local/share/fish/generated_completions";
/// Between two looks at what was shown; far shorter than a program takes to start.
const LOOK: Duration = Duration::from_micros(50);

pub struct Shown(pub Arc<Mutex<Vec<u8>>>);

impl Screen for Shown {
    fn show(&mut self, bytes: &[u8]) {
        self.0.lock().unwrap().extend_from_slice(bytes);
    }
}

pub struct Bench {
    pub shell: Shell,
    pub name: &'static str,
    pub shown: Arc<Mutex<Vec<u8>>>,
    pub beside: Arc<Mutex<String>>,
    home: tempfile::TempDir,
}

impl Bench {
    pub fn new(name: &'static str, start_up: &str) -> Self {
        let home = tempfile::tempdir().unwrap();
        let file = match name {
            "bash" => home.path().join(".bashrc"),
            "zsh" => home.path().join(".zshrc"),
            _ => home.path().join(".config/fish/config.fish"),
        };
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, start_up).unwrap();
        std::fs::create_dir_all(home.path().join(FISH_HAS_RUN)).unwrap();
        let environment = [
            ("HOME", home.path().as_os_str().to_owned()),
            ("PATH", std::env::var_os("PATH").unwrap()),
            ("TERM", OsString::from("xterm-256color")),
            ("LANG", OsString::from("C.UTF-8")),
        ];
        let beside = Arc::new(Mutex::new(String::new()));
        let told = Arc::clone(&beside);
        let shell = Shell::start(
            &Setup {
                program: PathBuf::from(name),
                directory: home.path().to_owned(),
                environment: environment.map(|(name, value)| (OsString::from(name), value)).to_vec(),
                size: Size { rows: 24, columns: 80 },
                settings: None,
                files: StartUp::Own,
            },
            move |text| told.lock().unwrap().push_str(text),
        )
        .unwrap();
        Self {
            shell,
            name,
            shown: Arc::default(),
            beside,
            home,
        }
    }

    pub fn home(&self) -> &std::path::Path {
        self.home.path()
    }

    pub fn relay(&self) -> Relay {
        Relay {
            keys: None,
            ahead: Vec::new(),
            screen: Box::new(Shown(Arc::clone(&self.shown))),
        }
    }

    /// With somebody who presses keys: what is written there.
    pub fn relay_with_keys(&self) -> (Relay, PipeWriter) {
        let (read, write) = std::io::pipe().unwrap();
        let relay = Relay {
            keys: Some(read.into()),
            ..self.relay()
        };
        (relay, write)
    }

    /// Resolves when that is among what was shown; what was shown before is to be cleared first.
    pub async fn shows(&self, text: &str) {
        let until = Instant::now() + PATIENCE;
        while !String::from_utf8_lossy(&self.shown.lock().unwrap()).contains(text) {
            assert!(Instant::now() < until, "{}: {text} was not shown", self.name);
            std::thread::sleep(LOOK);
            tokio::task::yield_now().await;
        }
    }

    /// Resolves when that is among what was told beside.
    pub async fn tells(&self, text: &str) {
        let until = Instant::now() + PATIENCE;
        while !self.beside.lock().unwrap().contains(text) {
            assert!(Instant::now() < until, "{}: {text} was not told", self.name);
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    pub async fn run(&self, command: &str) -> Ran {
        tokio::time::timeout(PATIENCE, self.shell.run(command, self.relay()))
            .await
            .unwrap_or_else(|_| panic!("{}: {command}", self.name))
            .unwrap()
    }

    /// Runs a command that must end well, and gives what it printed.
    pub async fn text(&self, command: &str) -> String {
        let ran = self.run(command).await;
        assert_eq!(
            ran.ended,
            Ended::Exited(0),
            "{}: {command}: {}",
            self.name,
            ran.output.text(None)
        );
        ran.output.text(None)
    }

    /// Runs a command, and presses keys, once, when it has shown something.
    pub async fn with_keys(&self, command: &str, after: &str, keys: &[u8]) -> Ran {
        self.shown.lock().unwrap().clear();
        let (relay, mut press) = self.relay_with_keys();
        let running = tokio::time::timeout(PATIENCE, self.shell.run(command, relay));
        tokio::pin!(running);
        tokio::select! {
            ran = &mut running => panic!("{}: {command}: over before {after:?} was shown: {ran:?}", self.name),
            () = self.shows(after) => press.write_all(keys).unwrap(),
        }
        running
            .await
            .unwrap_or_else(|_| panic!("{}: {command} runs on", self.name))
            .unwrap()
    }
}

pub fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
}

/// Tries something on each shell.
pub fn each(start_up: &str, run: impl AsyncFn(&Bench)) {
    for name in SHELLS {
        let bench = Bench::new(name, start_up);
        runtime().block_on(run(&bench));
    }
}
