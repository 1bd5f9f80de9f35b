//! A PostgreSQL server of a test's own: made in a temporary directory, run as a user without rights, ended with the test.
//!
//! Making a cluster takes seconds, so the first test that needs one keeps it as a template in the target directory and the others
//! copy it. The server listens on a unix socket in its directory (everybody on this machine is let in) and on a port of
//! the loopback (with [`PASSWORD`]). It does not wait for the disk: what a test kills is the server, not the machine.

use std::fs::{self, File};
use std::io::Write as _;
use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The database's user.
pub const USER: &str = "aish";
/// The password of [`USER`] on the loopback.
pub const PASSWORD: &str = "pass@word/1";
/// The same in an address.
pub const PASSWORD_ENCODED: &str = "pass%40word%2F1";

/// How long anything may take that a test waits for.
pub const PATIENCE: Duration = Duration::from_secs(60);
/// Between two looks whether it has.
pub const LOOK_EVERY: Duration = Duration::from_millis(10);

const SETTINGS: &str = "
fsync = off
min_wal_size = 2MB
shared_buffers = 16MB
dynamic_shared_memory_type = posix
max_connections = 100
listen_addresses = '127.0.0.1'
autovacuum = off
max_wal_senders = 0
wal_level = minimal
";

/// A running server.
pub struct PostgresServer {
    programs: Programs,
    directory: TempDir,
    port: u16,
    process: Option<Child>,
    databases: u32,
}

impl PostgresServer {
    /// Starts one with nothing in it.
    pub fn start() -> Self {
        let programs = Programs::find();
        let template = programs.template();
        let directory = tempfile::tempdir().unwrap();
        if let Some((user, group)) = programs.user {
            chown(directory.path(), Some(user), Some(group)).unwrap();
        }
        let data = directory.path().join("data");
        run(Command::new("cp").arg("-a").arg(&template).arg(&data));
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut settings = fs::OpenOptions::new()
            .append(true)
            .open(data.join("postgresql.conf"))
            .unwrap();
        let socket = directory.path().display();
        write!(
            settings,
            "{SETTINGS}port = {port}\nunix_socket_directories = '{socket}'\n"
        )
        .unwrap();
        let mut server = Self {
            programs,
            directory,
            port,
            process: None,
            databases: 0,
        };
        server.spawn();
        server
    }

    /// A new, empty database, by the unix socket.
    pub fn database(&mut self) -> String {
        let name = self.new_database();
        let socket = self.directory.path().display().to_string().replace('/', "%2F");
        format!("postgres://{USER}@{socket}:{}/{name}", self.port)
    }

    /// A new, empty database, by the loopback and a password.
    pub fn database_by_port(&mut self) -> String {
        let name = self.new_database();
        format!("postgres://{USER}:{PASSWORD_ENCODED}@127.0.0.1:{}/{name}", self.port)
    }

    /// Offers encryption from now on, with a certificate for `localhost` that is its own authority; where that is.
    pub fn encrypt(&mut self) -> PathBuf {
        let data = self.directory.path().join("data");
        let (key, certificate) = (data.join("server.key"), data.join("server.crt"));
        run(Command::new("openssl")
            .args([
                "req",
                "-x509",
                "-newkey",
                "rsa:2048",
                "-nodes",
                "-days",
                "2",
                "-subj",
                "/CN=localhost",
            ])
            .args([
                "-addext",
                "subjectAltName=DNS:localhost",
                "-addext",
                "basicConstraints=critical,CA:FALSE",
                "-keyout",
            ])
            .arg(&key)
            .arg("-out")
            .arg(&certificate));
        if let Some((user, group)) = self.programs.user {
            chown(&key, Some(user), Some(group)).unwrap();
        }
        self.psql("postgres", "ALTER SYSTEM SET ssl = on");
        self.restart_immediately();
        certificate
    }

    /// The port on the loopback.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// What `psql` prints for a statement.
    pub fn psql(&self, database: &str, sql: &str) -> String {
        let output = Command::new(self.programs.directory.join("psql"))
            .args([
                "-X",
                "-q",
                "-A",
                "-t",
                "-v",
                "ON_ERROR_STOP=1",
                "-U",
                USER,
                "-d",
                database,
                "-c",
                sql,
            ])
            .arg("-h")
            .arg(self.directory.path())
            .args(["-p", &self.port.to_string()])
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    /// Ends the server without a word to anybody, as `pg_ctl stop -m immediate` does, and starts it again: it recovers as after
    /// a crash.
    pub fn restart_immediately(&mut self) {
        self.stop();
        self.spawn();
    }

    /// Ends the server likewise.
    pub fn stop(&mut self) {
        let Some(mut process) = self.process.take() else {
            return;
        };
        run(Command::new("kill").args(["-QUIT", &process.id().to_string()]));
        process.wait().unwrap();
    }

    /// Starts it again, and waits until it answers. It ends with the thread that calls this.
    pub fn spawn(&mut self) {
        let log = File::options()
            .create(true)
            .append(true)
            .open(self.directory.path().join("log"))
            .unwrap();
        let process = self
            .programs
            .command("postgres")
            .arg("-D")
            .arg(self.directory.path().join("data"))
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        self.process = Some(process);
        let started = Instant::now();
        while !self.is_ready() {
            let ended = self.process.as_mut().unwrap().try_wait().unwrap();
            assert!(ended.is_none() && started.elapsed() < PATIENCE, "{}", self.log());
            thread::sleep(LOOK_EVERY);
        }
    }

    fn is_ready(&self) -> bool {
        Command::new(self.programs.directory.join("pg_isready"))
            .args(["-q", "-h", "127.0.0.1", "-p", &self.port.to_string()])
            .status()
            .unwrap()
            .success()
    }

    fn log(&self) -> String {
        let log = fs::read_to_string(self.directory.path().join("log")).unwrap_or_default();
        format!("the server did not start:\n{log}")
    }

    fn new_database(&mut self) -> String {
        self.databases += 1;
        let name = format!("test_{}", self.databases);
        self.psql("postgres", &format!("CREATE DATABASE {name}"));
        name
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        if let Some(mut process) = self.process.take() {
            let _ = Command::new("kill").args(["-QUIT", &process.id().to_string()]).status();
            let _ = process.wait();
        }
    }
}

/// Where PostgreSQL's programs are, and who runs them.
struct Programs {
    directory: PathBuf,
    /// The user and group they run as, where this process is root: they refuse to be.
    user: Option<(u32, u32)>,
}

impl Programs {
    fn find() -> Self {
        let debian = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
        let debian = debian.map(|version| version.path().join("bin"));
        let path = std::env::var_os("PATH").unwrap_or_default();
        let mut candidates: Vec<PathBuf> = debian.chain(std::env::split_paths(&path)).collect();
        candidates.retain(|directory| directory.join("initdb").exists() && directory.join("postgres").exists());
        let directory = candidates.into_iter().next();
        let directory = directory.expect("PostgreSQL is not here: install it with `apt-get install postgresql`");
        let is_root = fs::metadata("/proc/self").unwrap().uid() == 0;
        Self {
            directory,
            user: is_root.then(someone_without_rights),
        }
    }

    /// One of its programs, which ends with this process.
    fn command(&self, program: &str) -> Command {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "QUIT"]);
        if let Some((user, group)) = self.user {
            command.arg(format!("--reuid={user}")).arg(format!("--regid={group}"));
            command.arg("--clear-groups");
        }
        command.arg("--").arg(self.directory.join(program));
        command.env("LC_ALL", "C.UTF-8").current_dir("/");
        command
    }

    /// A cluster that was never started; made once for all tests.
    fn template(&self) -> PathBuf {
        let kept = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let version = run(Command::new(self.directory.join("postgres")).arg("--version"));
        let owner = self.user.map_or(0, |(user, _)| user);
        let number: String = version.chars().filter(char::is_ascii_digit).collect();
        let template = kept.join(format!("cluster-{number}-{owner}"));
        fs::create_dir_all(kept).unwrap();
        let lock = File::create(kept.join("cluster.lock")).unwrap();
        lock.lock().unwrap();
        if !template.exists() {
            let place = tempfile::tempdir().unwrap();
            self.make_cluster(place.path());
            // Copied under another name first: a template is whole or not there.
            let half = kept.join("cluster-half");
            let _ = fs::remove_dir_all(&half);
            run(Command::new("cp").arg("-a").arg(place.path().join("data")).arg(&half));
            fs::rename(&half, &template).unwrap();
        }
        template
    }

    fn make_cluster(&self, place: &Path) {
        let password = place.join("password");
        fs::write(&password, PASSWORD).unwrap();
        if let Some((user, group)) = self.user {
            chown(place, Some(user), Some(group)).unwrap();
            chown(&password, Some(user), Some(group)).unwrap();
        }
        run(self
            .command("initdb")
            .args([
                "--no-sync",
                "--wal-segsize=1",
                "--encoding=UTF8",
                "--locale=C.UTF-8",
                "--auth-local=trust",
            ])
            .args(["--auth-host=scram-sha-256", "--username", USER])
            .arg(format!("--pwfile={}", password.display()))
            .arg("-D")
            .arg(place.join("data")));
    }
}

/// The user that PostgreSQL's packages make, else nobody.
fn someone_without_rights() -> (u32, u32) {
    let accounts = fs::read_to_string("/etc/passwd").unwrap();
    let account = |name: &str| {
        let line = accounts.lines().find(|line| line.split(':').next() == Some(name))?;
        let mut fields = line.split(':').skip(2);
        Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
    };
    account("postgres").or_else(|| account("nobody")).unwrap()
}

/// What a command prints; it must succeed.
fn run(command: &mut Command) -> String {
    let output = command.stdin(Stdio::null()).output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {told}");
    String::from_utf8(output.stdout).unwrap()
}
