//! The scenarios that do not apply, or not yet, each with its reason, from one file of the repository.

/// Which scenario, in which version of the protocol, and why not.
pub struct Exception {
    pub scenario: String,
    /// `*` stands for every version.
    pub version: String,
}

/// Reads the lines of that side, `client` or `server`.
///
/// A line is `SIDE SCENARIO VERSION REASON…`; what begins with `#` is a comment. A line without a reason is none: panics.
pub fn of_side(text: &str, side: &str) -> Vec<Exception> {
    let lines = text
        .lines()
        .filter(|line| !line.trim().is_empty() && !line.starts_with('#'));
    let all = lines.map(|line| {
        let mut words = line.split_whitespace().map(str::to_owned);
        let (of, scenario, version) = (words.next(), words.next(), words.next());
        assert!(words.next().is_some(), "no reason is given: {line}");
        (of.unwrap(), scenario.unwrap(), version.unwrap())
    });
    all.filter(|(of, _, _)| of == side)
        .map(|(_, scenario, version)| Exception { scenario, version })
        .collect()
}
