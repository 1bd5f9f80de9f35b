//! What a command takes as arguments, as far as it tells a sentence from a command: `kill` takes numbers, so `kill the server`
//! is none; `echo` takes anything, so `echo what is this` is one.

use super::words::english;

/// What the arguments of a command are, options aside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Expects {
    /// Words of any kind, a sentence too.
    Prose,
    /// Words of a language of its own, prepositions among them (`ufw allow from … to …`).
    Words,
    /// Names that need not exist yet.
    Names,
    /// Files that are there.
    Files,
    /// Files that are there, for a command whose name is a word of sentences as well.
    FilesOnly,
    /// Hosts, users or services: names that cannot be looked up here.
    Hosts,
    /// A file, then anything: an interpreter.
    Script,
    /// A pattern, then files.
    Pattern,
    /// A command, then its arguments.
    Wrapped,
    /// Names of commands.
    Commands,
    /// Numbers, or job numbers.
    Numbers,
    /// Few or none.
    Nothing,
    /// What is to be made.
    Targets,
    /// One of these words, then anything.
    Subcommand(&'static [&'static str]),
    /// Nothing is known of it, and its name is no English word.
    Any,
    /// Nothing is known of it, and its name is an English word.
    AnyEnglish,
}

#[rustfmt::skip]
const PROSE: &[&str] = &[
    "apropos", "banner", "cowsay", "cowthink", "echo", "espeak", "espeak-ng", "figlet", "jrnl", "llm", "logger",
    "notify-send", "printf", "say", "spd-say", "task", "tldr", "todo", "toilet",
];

#[rustfmt::skip]
const WORDS: &[&str] = &[
    "bc", "expr", "firewall-cmd", "fortune", "getopts", "ip", "iptables", "iw", "nft", "nmcli", "pactl", "tc", "tmux",
    "ufw", "units", "virsh", "xdotool", "xrandr", "xset", "zfs", "zpool",
];

#[rustfmt::skip]
const NAMES: &[&str] = &[
    "mkdir", "service", "ssh-keygen", "touch", "unset",
];

#[rustfmt::skip]
const FILES: &[&str] = &[
    ".", "bat", "cat", "cd", "chgrp", "chmod", "chown", "cksum", "clang", "cmp", "code", "column", "comm", "compare",
    "convert", "cp", "cut", "dd", "diff", "display", "du", "edit", "emacs", "evince", "expand", "export",     "file", "find", "fmt", "fold", "g++", "gdb", "gimp", "gunzip", "gzip", "head", "hexdump", "hx",
    "identify", "import", "install", "join", "jq", "kak", "ld", "less", "link", "ln", "look", "ls", "md5sum",
    "montage", "more", "mount", "mpv", "mv", "nano", "nl", "nvim", "open", "paste", "patch", "play", "print", "pushd",
    "pytest", "read", "rev", "rm", "rmdir", "rsync", "rustc", "script", "see", "sha256sum", "shred", "size", "sort",
    "source", "split", "stat", "strings", "strip", "subl", "sum", "tac", "tail", "tar", "tee", "test", "tr", "tree",
    "truncate", "umount", "uniq", "unlink", "unzip", "vi", "view", "vim", "vlc", "wall", "wc", "xdg-open", "xxd", "z",
    "zip",
];

#[rustfmt::skip]
const FILES_ONLY: &[&str] = &[
    "as", "awk", "ed", "ffmpeg", "ffprobe", "gcc", "od", "sed", "set",
];

#[rustfmt::skip]
const HOSTS: &[&str] = &[
    "curl", "dig", "finger", "groups", "host", "hostname", "http", "id", "last", "let", "mail", "mysql", "nc",
    "nslookup", "passwd", "ping", "ps", "scp", "setxkbmap", "sftp", "ssh", "su", "talk", "telnet", "trap",
    "traceroute", "w", "wget", "whois", "write",
];

/// Of [`FILES`], those typed so often with a name that is not there that it is one nevertheless.
const VIEWERS: &[&str] = &["cat", "diff", "file", "head", "less", "more", "sort", "stat", "tail"];

#[rustfmt::skip]
const SCRIPT: &[&str] = &[
    "bash", "dash", "fish", "java", "ksh", "node", "perl", "php", "psql", "python", "python2", "python3", "ruby",
    "sh", "sqlite3", "zsh",
];

#[rustfmt::skip]
const PATTERN: &[&str] = &[
    "ack", "ag", "egrep", "fd", "fgrep", "git-grep", "grep", "rg", "zgrep",
];

#[rustfmt::skip]
const WRAPPED: &[&str] = &[
    "builtin", "chronic", "command", "doas", "env", "eval", "exec", "ionice", "ltrace", "nice", "nohup", "parallel",
    "setsid", "stdbuf", "strace", "sudo", "time", "timeout", "watch", "xargs",
];

#[rustfmt::skip]
const COMMANDS: &[&str] = &[
    "hash", "help", "info", "man", "tldr", "type", "unalias", "whatis", "whereis", "which",
];

#[rustfmt::skip]
const NUMBERS: &[&str] = &[
    "at", "bg", "break", "cal", "continue", "disown", "exit", "factor", "fg", "history", "jobs", "kill", "logout",
    "return", "seq", "shift", "sleep", "wait",
];

#[rustfmt::skip]
const NOTHING: &[&str] = &[
    "batch", "blkid", "clear", "date", "df", "dirs", "dmesg", "enable", "false", "free", "htop", "lsblk", "lscpu",
    "mesg", "pwd", "reset", "screen", "sync", "times", "top", "true", "tty", "uname", "uptime", "users", "who",
    "whoami", "yes",
];

#[rustfmt::skip]
const MAKE: &[&str] = &[
    "gmake", "just", "make", "ninja", "rake",
];

/// What `make` is asked for most: of these there may be several in one line.
#[rustfmt::skip]
pub(super) const TARGETS: &[&str] = &[
    "all", "build", "check", "clean", "default", "dist", "distclean", "doc", "docs", "fmt", "format", "help", "html",
    "install", "lint", "pdf", "release", "run", "start", "stop", "test", "tests", "uninstall", "update", "watch",
];

#[rustfmt::skip]
const GIT: &[&str] = &[
    "absorb", "add", "am", "annex", "apply", "archive", "bisect", "blame", "branch", "bundle", "cat-file",
    "check-ignore", "checkout", "cherry", "cherry-pick", "clean", "clone", "commit", "config", "count-objects",
    "daemon", "describe", "diff", "difftool", "fetch", "filter-branch", "filter-repo", "flow", "format-patch", "fsck",
    "gc", "grep", "gui", "hash-object", "help", "init", "lfs", "log", "ls-files", "ls-remote", "ls-tree",
    "maintenance", "merge", "merge-base", "mergetool", "mv", "name-rev", "notes", "pull", "push", "range-diff",
    "rebase", "reflog", "remote", "replace", "request-pull", "rerere", "reset", "restore", "rev-list", "rev-parse",
    "revert", "rm", "send-email", "shortlog", "show", "show-ref", "sparse-checkout", "stage", "stash", "status",
    "submodule", "switch", "symbolic-ref", "tag", "update-index", "verify-commit", "whatchanged", "worktree",
];

#[rustfmt::skip]
const CONTAINERS: &[&str] = &[
    "attach", "build", "builder", "buildx", "commit", "compose", "config", "container", "context", "cp", "create",
    "desktop", "diff", "down", "events", "exec", "export", "farm", "generate", "help", "history", "image", "images",
    "import", "info", "init", "inspect", "kill", "kube", "load", "login", "logout", "logs", "machine", "manifest",
    "model", "mount", "network", "node", "pause", "play", "plugin", "pod", "port", "ps", "pull", "push", "rename",
    "restart", "rm", "rmi", "run", "save", "sbom", "scan", "scout", "search", "secret", "service", "stack", "start",
    "stats", "stop", "swarm", "system", "tag", "top", "tree", "trust", "unmount", "unpause", "unshare", "up",
    "update", "version", "volume", "wait",
];

#[rustfmt::skip]
const KUBERNETES: &[&str] = &[
    "annotate", "api-resources", "apply", "attach", "auth", "autoscale", "cluster-info", "config", "cordon", "cp",
    "create", "debug", "delete", "describe", "diff", "drain", "edit", "events", "exec", "explain", "expose", "get",
    "help", "history", "install", "kustomize", "label", "lint", "list", "logs", "patch", "port-forward", "proxy",
    "replace", "repo", "rollback", "rollout", "run", "scale", "search", "set", "show", "start", "status", "stop",
    "taint", "template", "test", "top", "uncordon", "uninstall", "upgrade", "version", "wait",
];

#[rustfmt::skip]
const PACKAGES: &[&str] = &[
    "access", "add", "audit", "autoremove", "bin", "build", "bundle", "c", "cache", "cask", "check", "ci", "clean",
    "cleanup", "compile", "config", "connect", "create", "dedupe", "depends", "deps", "dev", "dist-upgrade", "dlx",
    "doctor", "download", "dup", "edit-sources", "env", "exec", "explain", "find", "fmt", "freeze", "full-upgrade",
    "fund", "generate", "get", "global", "group", "grp", "help", "history", "hold", "i", "in", "info", "init",
    "inspect", "install", "interface", "it", "link", "list", "lock", "login", "ls", "mark", "module", "new",
    "outdated", "owner", "pack", "pin", "pip", "pkg", "policy", "prefix", "profile", "provides", "prune", "publish",
    "purge", "query", "rebuild", "ref", "refresh", "reinstall", "remove", "repoquery", "require", "rm", "root", "run",
    "satisfy", "se", "search", "self", "serve", "services", "set", "show", "source", "start", "start-server", "stop",
    "swap", "switch", "sync", "t", "tap", "task", "team", "test", "token", "tool", "tree", "un", "uninstall",
    "unlink", "unpin", "untap", "up", "update", "upgrade", "uses", "v", "venv", "version", "view", "whoami", "why",
    "x",
];

#[rustfmt::skip]
const CARGO: &[&str] = &[
    "add", "b", "bench", "bug", "build", "c", "check", "clean", "clippy", "component", "default", "doc", "env",
    "fetch", "fix", "fmt", "generate", "generate-lockfile", "get", "init", "install", "list", "login", "metadata",
    "miri", "mod", "new", "nextest", "override", "owner", "package", "publish", "r", "remove", "run", "rustc",
    "search", "self", "show", "t", "target", "telemetry", "test", "tool", "toolchain", "tree", "uninstall", "update",
    "vendor", "version", "vet", "watch", "which", "work",
];

#[rustfmt::skip]
const SERVICES: &[&str] = &[
    "cat", "daemon-reload", "disable", "edit", "enable", "get-default", "halt", "hibernate", "is-active",
    "is-enabled", "isolate", "kill", "list-timers", "list-unit-files", "list-units", "mask", "poweroff", "reboot",
    "reload", "reset-failed", "restart", "revert", "set-default", "set-property", "show", "start", "status", "stop",
    "suspend", "try-restart", "unmask",
];

#[rustfmt::skip]
const CLOUD: &[&str] = &[
    "account", "acm", "acr", "ad", "add", "aks", "alias", "api", "apply", "appservice", "attestation", "auth",
    "backups", "box", "browse", "build", "cache", "checkout", "ci", "clone", "cloud", "cloudformation", "codespace",
    "commit", "compute", "config", "configure", "console", "container", "create", "cs", "deploy", "destroy", "dev",
    "diff", "disks", "dns", "ec2", "ecr", "ecs", "eks", "extension", "fmt", "force-unlock", "functions", "get",
    "gist", "global-status", "graph", "group", "halt", "iam", "import", "init", "insert", "instances", "issue",
    "keyvault", "label", "lambda", "lb", "list", "log", "login", "logs", "monitor", "mr", "network", "new", "org",
    "output", "package", "plan", "port", "pr", "project", "projects", "providers", "provision", "ps", "pull", "push",
    "rds", "refresh", "release", "reload", "repo", "resource", "resume", "role", "route53", "ruleset", "run", "s3",
    "s3api", "search", "secret", "serve", "server", "show", "snapshot", "snapshots", "sns", "sql", "sqs", "ssh",
    "ssh-key", "ssm", "stack", "state", "status", "storage", "sts", "suspend", "taint", "test", "tunnel", "untaint",
    "up", "update", "validate", "variable", "version", "vm", "webapp", "workflow", "workspace", "zones",
];

/// What the command called `name` takes.
pub(super) fn expects(name: &str) -> Expects {
    let tables: &[(&[&str], Expects)] = &[
        (PROSE, Expects::Prose),
        (WORDS, Expects::Words),
        (NAMES, Expects::Names),
        (FILES, Expects::Files),
        (FILES_ONLY, Expects::FilesOnly),
        (HOSTS, Expects::Hosts),
        (SCRIPT, Expects::Script),
        (PATTERN, Expects::Pattern),
        (WRAPPED, Expects::Wrapped),
        (COMMANDS, Expects::Commands),
        (NUMBERS, Expects::Numbers),
        (NOTHING, Expects::Nothing),
        (MAKE, Expects::Targets),
        (&["git"], Expects::Subcommand(GIT)),
        (
            &["docker", "docker-compose", "nerdctl", "podman", "podman-compose"],
            Expects::Subcommand(CONTAINERS),
        ),
        (
            &["helm", "k3s", "kubectl", "minikube", "oc"],
            Expects::Subcommand(KUBERNETES),
        ),
        (
            &[
                "apt", "apt-get", "aptitude", "brew", "bun", "bundle", "composer", "conda", "deno", "dnf", "flatpak",
                "gem", "npm", "pacman", "pip", "pip3", "pipx", "pnpm", "poetry", "snap", "uv", "yarn", "yum", "zypper",
            ],
            Expects::Subcommand(PACKAGES),
        ),
        (&["cargo", "go", "rustup", "zig"], Expects::Subcommand(CARGO)),
        (&["systemctl"], Expects::Subcommand(SERVICES)),
        (
            &[
                "aws",
                "az",
                "fly",
                "gcloud",
                "gh",
                "glab",
                "heroku",
                "hg",
                "hugo",
                "pass",
                "pulumi",
                "svn",
                "terraform",
                "tofu",
                "vagrant",
                "vercel",
            ],
            Expects::Subcommand(CLOUD),
        ),
    ];
    let name = name.rsplit('/').next().unwrap_or(name);
    let entry = tables
        .iter()
        .find(|(names, _)| names.contains(&name))
        .map(|(_, expects)| *expects);
    match entry {
        Some(Expects::Files) if english(name).is_some() && !VIEWERS.contains(&name) => Expects::FilesOnly,
        Some(expects) => expects,
        None if english(name).is_some() => Expects::AnyEnglish,
        None => Expects::Any,
    }
}
