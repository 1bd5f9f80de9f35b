//! What is made from the command line's description: completions for shells, and manual pages.
//!
//! `aish completions SHELL` prints what a shell reads at its start; `aish man` prints the page of aish, and `aish man DIR` writes
//! that and one for each command into a directory. Both work without configuration, so that a packager can run them.

use crate::cli::{self, CompletionShell};
use crate::failure::{DONE, Failure};
use crate::sessions;
use clap_mangen::Man;
use std::io::{self, Write as _};
use std::path::Path;

/// The name the program is called by.
const PROGRAM: &str = "aish";
/// The section of the manual for programs anybody runs.
const SECTION: &str = "1";

/// Prints completions.
///
/// # Errors
/// They cannot be written.
pub fn completions(shell: CompletionShell) -> Result<u8, Failure> {
    use clap_complete::{Shell, generate};
    let shell = match shell {
        CompletionShell::Bash => Shell::Bash,
        CompletionShell::Zsh => Shell::Zsh,
        CompletionShell::Fish => Shell::Fish,
    };
    let mut text = Vec::new();
    generate(shell, &mut cli::description(), PROGRAM, &mut text);
    sessions::print(&String::from_utf8_lossy(&text))
}

/// Prints the page of aish, or writes all pages into a directory.
///
/// # Errors
/// They cannot be written.
pub fn man(directory: Option<&Path>) -> Result<u8, Failure> {
    let pages = pages();
    let Some(directory) = directory else {
        let page = pages.into_iter().next().map(|(_, page)| page);
        return sessions::print(&String::from_utf8_lossy(&page.unwrap_or_default()));
    };
    let failed = |what: &Path, error: io::Error| Failure::failed(format!("cannot write {}: {error}", what.display()));
    std::fs::create_dir_all(directory).map_err(|error| failed(directory, error))?;
    for (name, page) in pages {
        let path = directory.join(format!("{name}.{SECTION}"));
        std::fs::write(&path, page).map_err(|error| failed(&path, error))?;
    }
    Ok(DONE)
}

/// All pages by name, that of aish first.
fn pages() -> Vec<(String, Vec<u8>)> {
    let mut root = cli::description();
    // Options that go with every command are known to each only afterwards.
    root.build();
    let mut pages = Vec::new();
    let mut waiting = vec![(PROGRAM.to_owned(), root)];
    while let Some((name, command)) = waiting.pop() {
        let commands: Vec<_> = command.get_subcommands().cloned().collect();
        let commands = commands.into_iter().rev().filter(|command| !command.is_hide_set());
        waiting.extend(commands.map(|command| (format!("{name}-{}", command.get_name()), command)));
        let examples = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        let command = command.after_help(None);
        let mut page = Vec::new();
        // Nothing is written but into memory.
        let _ = render(&Man::new(command).section(SECTION), &examples, &mut page);
        pages.push((name, page));
    }
    pages
}

fn render(man: &Man, examples: &str, page: &mut Vec<u8>) -> io::Result<()> {
    man.render(page)?;
    // As they stand: a filled paragraph of them could not be read.
    let mut is_open = false;
    for line in examples.lines() {
        if let Some(title) = line.strip_suffix(':') {
            writeln!(page, ".SH {}\n.nf", roff(&title.to_uppercase()))?;
            is_open = true;
        } else if is_open {
            writeln!(page, "{}", roff(line))?;
        }
    }
    if is_open {
        writeln!(page, ".fi")?;
    }
    Ok(())
}

/// Text that roff takes as it is.
fn roff(line: &str) -> String {
    let text = line.replace('\\', r"\e").replace('-', r"\-").replace('\'', r"\(aq");
    match text.starts_with('.') {
        true => format!(r"\&{text}"),
        false => text,
    }
}
