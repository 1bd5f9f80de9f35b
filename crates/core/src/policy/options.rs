//! Options that stand between a program and its subcommand: `git -C x push` is a `git push` to whoever denies that.

use super::command::bare_name;

/// Programs with subcommands, and the options before those that take the next word. All other options stand alone.
const PROGRAMS: [(&str, &[&str]); 14] = [
    (
        "git",
        &[
            "-C",
            "-c",
            "--git-dir",
            "--work-tree",
            "--namespace",
            "--config-env",
            "--super-prefix",
            "--attr-source",
        ],
    ),
    ("docker", DOCKER),
    ("podman", DOCKER),
    (
        "kubectl",
        &[
            "-n",
            "--namespace",
            "--context",
            "--cluster",
            "--user",
            "--kubeconfig",
            "-s",
            "--server",
            "--token",
            "--as",
            "--as-group",
            "--as-uid",
            "--request-timeout",
            "--cache-dir",
            "--certificate-authority",
            "--client-certificate",
            "--client-key",
            "--tls-server-name",
            "--username",
            "--password",
            "-v",
            "--v",
        ],
    ),
    (
        "helm",
        &[
            "-n",
            "--namespace",
            "--kube-context",
            "--kubeconfig",
            "--kube-apiserver",
            "--kube-token",
        ],
    ),
    (
        "systemctl",
        &[
            "-H",
            "--host",
            "-M",
            "--machine",
            "-t",
            "--type",
            "--state",
            "-p",
            "--property",
            "-n",
            "--lines",
            "-o",
            "--output",
            "-s",
            "--signal",
            "--root",
            "--job-mode",
        ],
    ),
    ("cargo", &["--color", "--config", "-Z", "-C"]),
    ("npm", NPM),
    ("pnpm", NPM),
    ("yarn", &["--cwd"]),
    ("apt", APT),
    ("apt-get", APT),
    (
        "pip",
        &[
            "--python",
            "--proxy",
            "--retries",
            "--timeout",
            "--log",
            "--cache-dir",
            "--cert",
        ],
    ),
    ("gh", &["-R", "--repo"]),
];
const DOCKER: &[&str] = &[
    "-c",
    "--context",
    "-H",
    "--host",
    "-l",
    "--log-level",
    "--config",
    "--tlscacert",
    "--tlscert",
    "--tlskey",
    "--connection",
    "--url",
];
const NPM: &[&str] = &[
    "--prefix",
    "-w",
    "--workspace",
    "--registry",
    "--userconfig",
    "--loglevel",
    "--cache",
    "-C",
];
const APT: &[&str] = &["-o", "-c", "-t", "-a", "--option", "--config-file", "--default-release"];

/// How many words behind the name of a program are options before its subcommand, and what those take.
pub(super) fn before_subcommand(words: &[&str]) -> usize {
    let Some((name, arguments)) = words.split_first() else {
        return 0;
    };
    let Some((_, with_word)) = PROGRAMS.iter().find(|(program, _)| *program == bare_name(name)) else {
        return 0;
    };
    let mut count = 0;
    while let Some(word) = arguments.get(count).filter(|word| word.starts_with(['-', '+'])) {
        count += if with_word.contains(word) { 2 } else { 1 };
    }
    count.min(arguments.len())
}
