//! A real shell on the test's own terms: a home of its own, start-up files as a test wants them, and what it showed.

use aish_shell::{Ended, Ran, Relay, Screen, Setup, Shell, Size, StartUp};
use std::ffi::OsString;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The shells that are tried; each must be installed.
pub const SHELLS: [&str; 3] = ["bash", "zsh", "fish"];
/// How long anything may take before the test gives up.
pub const PATIENCE: Duration = Duration::from_secs(30);

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
    _home: tempfile::TempDir,
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
            _home: home,
        }
    }

    pub fn relay(&self) -> Relay {
        Relay {
            keys: None,
            screen: Box::new(Shown(Arc::clone(&self.shown))),
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

    /// Runs a command, pressing keys once it has printed something. A control character is pressed until the command is over,
    /// since nothing shows when a shell has handed the terminal over.
    pub async fn with_keys(&self, command: &str, after: &str, keys: &[u8]) -> Ran {
        self.shown.lock().unwrap().clear();
        let is_control = keys.len() == 1;
        let (read, write) = std::io::pipe().unwrap();
        let relay = Relay {
            keys: Some(read.into()),
            screen: Box::new(Shown(Arc::clone(&self.shown))),
        };
        let running = self.shell.run(command, relay);
        tokio::pin!(running);
        let mut write = Some(write);
        let mut keep = None;
        let until = std::time::Instant::now() + PATIENCE;
        loop {
            assert!(std::time::Instant::now() < until, "{}: {command}", self.name);
            tokio::select! {
                ran = &mut running => return ran.unwrap(),
                () = tokio::time::sleep(Duration::from_millis(20)) => {
                    let shown = String::from_utf8_lossy(&self.shown.lock().unwrap()).into_owned();
                    if shown.contains(after) && let Some(mut write) = write.take() {
                        write.write_all(keys).unwrap();
                        keep = is_control.then_some(write);
                    } else if let Some(write) = &mut keep {
                        write.write_all(keys).unwrap();
                    }
                }
            }
        }
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
