"""The processes that `bench/serve` starts and ends: the server, its database, the model; and what the kernel says of them."""

import atexit
import http.client
import os
import pathlib
import pwd
import re
import shutil
import signal
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
TOKEN = "bench-serve-token"
START_S_MAX = 60
LOOK_S = 0.002
TICK_S = 1 / os.sysconf("SC_CLK_TCK")

CONFIG = """\
default_model = "fake"

[models.fake]
provider = "openai-chat"
base_url = "{url}"
model = "fake"
"""


def cpu_s(pid):
    """CPU of a process so far, in seconds."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * TICK_S


def status(pid, field):
    return int(re.search(rf"{field}:\s+(\d+)", pathlib.Path(f"/proc/{pid}/status").read_text())[1])


def children(pid):
    return [int(child) for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def unread_sockets(port):
    """How many connections of a local port have bytes that the other side does not take."""
    lines = pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]
    fields = (line.split() for line in lines)
    return sum(int(field[1].rpartition(":")[2], 16) == port and int(field[4].partition(":")[0], 16) > 0 for field in fields)


def sync_ms(folder):
    """What writing 4 KB to the disk below a folder and waiting for it takes, in ms: the median."""
    took = []
    with open(folder / "sync", "wb", buffering=0) as file:
        for _ in range(100):
            file.write(b"x" * 4096)
            began = time.perf_counter()
            os.fdatasync(file.fileno())
            took.append(time.perf_counter() - began)
    return sorted(took)[len(took) // 2] * 1e3


class Model:
    """The fake model."""

    def __init__(self):
        self.process = subprocess.Popen([sys.executable, HERE / "model.py"], stdout=subprocess.PIPE, text=True)
        self.url = self.process.stdout.readline().strip()

    def end(self):
        self.process.kill()
        self.process.wait()


class Server:
    """`aish serve` over a store, from its start to its end."""

    def __init__(self, binary, home, model, store=None):
        home.mkdir(exist_ok=True)
        (home / "config.toml").write_text(CONFIG.format(url=model.url))
        env = {"PATH": os.environ["PATH"], "HOME": str(home), "AISH_HOME": str(home), "LANG": "C.UTF-8", "TOKEN": TOKEN}
        command = [binary, "serve", "--listen", "127.0.0.1:0", "--token-env", "TOKEN"] + (["--store", store] if store else [])
        began = time.perf_counter()
        self.log = open(home / "serve.log", "w+")
        self.process = subprocess.Popen(command, env=env, cwd=home, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)
        atexit.register(self.process.kill)
        log = home / "serve.log"
        self.port = self.bound(began, log)
        while self.get("/readyz")[0] != 200:
            self.look_again(began, log)
        self.ready_s = time.perf_counter() - began
        self.pid = self.process.pid

    def bound(self, began, log):
        while not (said := re.search(r"listening on http://127\.0\.0\.1:(\d+)", log.read_text())):
            self.look_again(began, log)
        return int(said[1])

    def look_again(self, began, log):
        if self.process.poll() is not None or time.perf_counter() - began > START_S_MAX:
            sys.exit(f"bench: the server did not start: {log.read_text()}")
        time.sleep(LOOK_S)

    def get(self, path):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=START_S_MAX)
        connection.request("GET", path, headers={"Authorization": f"Bearer {TOKEN}"})
        answer = connection.getresponse()
        body = answer.read()
        connection.close()
        return answer.status, body

    def rss_mb(self):
        return status(self.pid, "VmRSS") / 1024

    def threads(self):
        return status(self.pid, "Threads")

    def end(self):
        self.process.terminate()
        try:
            self.process.wait(15)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()


class Postgres:
    """A PostgreSQL of this run's own in a folder, as its packages set it up: it waits for the disk."""

    def __init__(self, folder):
        found = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin/initdb")) or [pathlib.Path(shutil.which("initdb") or "")]
        self.programs = found[-1].parent
        if not (self.programs / "postgres").exists():
            sys.exit("bench: PostgreSQL is missing: apt-get install postgresql")
        self.folder, self.user = folder, None
        folder.mkdir()
        # It refuses to be root.
        if os.getuid() == 0:
            names = {entry.pw_name for entry in pwd.getpwall()}
            self.user = pwd.getpwnam("postgres" if "postgres" in names else "nobody")
            os.chown(folder, self.user.pw_uid, self.user.pw_gid)
        self.run("initdb", "--encoding=UTF8", "--locale=C.UTF-8", "--auth=trust", "--username=aish", "-D", folder / "data")
        settings = ["-c", "listen_addresses=", "-c", f"unix_socket_directories={folder}", "-c", "max_wal_size=4GB"]
        with open(folder / "log", "w") as log:
            command = [self.programs / "postgres", "-D", folder / "data", *settings]
            self.process = subprocess.Popen(command, stdout=log, stderr=log, **self.as_user())
        began = time.perf_counter()
        while subprocess.run([self.programs / "pg_isready", "-q", "-h", folder]).returncode != 0:
            if self.process.poll() is not None or time.perf_counter() - began > START_S_MAX:
                sys.exit(f"bench: PostgreSQL did not start: {(folder / 'log').read_text()}")
            time.sleep(LOOK_S)

    def as_user(self):
        return {"cwd": "/"} | ({"user": self.user.pw_uid, "group": self.user.pw_gid, "extra_groups": []} if self.user else {})

    def run(self, program, *arguments):
        subprocess.run([self.programs / program, *arguments], stdout=subprocess.DEVNULL, check=True, **self.as_user())

    def sql(self, database, text):
        command = [self.programs / "psql", "-XqAt", "-v", "ON_ERROR_STOP=1", "-h", self.folder, "-U", "aish", "-d", database, "-c", text]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    def database(self, name):
        """The address of a new database."""
        self.sql("postgres", f"CREATE DATABASE {name}")
        return f"postgres://aish@{str(self.folder).replace('/', '%2F')}/{name}"

    def cpu_s(self):
        """CPU of all its processes that live, in seconds."""
        return sum(cpu_s(pid) for pid in [self.process.pid, *children(self.process.pid)])

    def end(self):
        # Fast: whoever is connected is sent away.
        self.process.send_signal(signal.SIGINT)
        self.process.wait()
