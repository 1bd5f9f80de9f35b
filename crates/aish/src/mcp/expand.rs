//! `${VAR}` and `${VAR:-default}` in what the configuration says of servers (SPEC 6.9).

/// A text that cannot be expanded: one line that says which variable is missing, or what is written wrongly.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExpandError {
    /// The variable is not set, and there is no default.
    #[error("${{{0}}} is not set; export it, or write ${{{0}:-default}}")]
    Unset(String),
    /// `${` without its end, or without a name.
    #[error("`{0}` is no variable: write ${{NAME}} or ${{NAME:-default}}")]
    Malformed(String),
}

/// Puts variables in. A `$` without `{` stands for itself, and what was put in is not looked at again.
///
/// # Errors
/// See [`ExpandError`].
pub fn expand<'v>(text: &str, variable: impl Fn(&str) -> Option<&'v str>) -> Result<String, ExpandError> {
    let mut expanded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, from)) = rest.split_once("${") {
        expanded.push_str(before);
        let Some((inside, after)) = from.split_once('}') else {
            return Err(ExpandError::Malformed(format!("${{{from}")));
        };
        let (name, default) = match inside.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (inside, None),
        };
        if !is_name(name) {
            return Err(ExpandError::Malformed(format!("${{{inside}}}")));
        }
        // As in a shell, `:-` stands in for an empty variable too.
        let value = variable(name).filter(|value| default.is_none() || !value.is_empty());
        match value.or(default) {
            Some(value) => expanded.push_str(value),
            None => return Err(ExpandError::Unset(name.to_owned())),
        }
        rest = after;
    }
    expanded.push_str(rest);
    Ok(expanded)
}

/// The variables that a text names; what is no variable is passed over.
pub fn names(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    let insides = std::iter::from_fn(move || {
        let (inside, after) = rest.split_once("${")?.1.split_once('}')?;
        rest = after;
        Some(inside)
    });
    let names = insides.map(|inside| inside.split_once(":-").map_or(inside, |(name, _)| name));
    names.filter(|name| is_name(name))
}

/// Whether a variable can be called so.
pub fn is_name(text: &str) -> bool {
    let mut letters = text.chars();
    let begins = letters
        .next()
        .is_some_and(|letter| letter.is_ascii_alphabetic() || letter == '_');
    begins && letters.all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn expanded(text: &str) -> Result<String, ExpandError> {
        expand(text, |name| match name {
            "A" => Some("one"),
            "EMPTY" => Some(""),
            "NESTED" => Some("${A}"),
            _ => None,
        })
    }

    /// SPEC 6.9: variables and defaults.
    #[test]
    fn variables() {
        for (text, expect) in [
            ("plain $ $A", "plain $ $A"),
            ("${A}", "one"),
            ("x${A}y${A}z", "xoneyonez"),
            ("${B:-two}", "two"),
            ("${B:-}", ""),
            ("${EMPTY}", ""),
            ("${EMPTY:-three}", "three"),
            ("${A:-four}", "one"),
            ("${NESTED}", "${A}"),
            ("${B:-a:-b}", "a:-b"),
        ] {
            assert_eq!(expanded(text).unwrap(), expect, "{text}");
        }
    }

    /// SPEC 10.5: which variables may be secrets is known without their values.
    #[test]
    fn named() {
        for (text, expect) in [
            ("Bearer ${A}", &["A"][..]),
            ("${A}${B:-${C}}", &["A", "B"]),
            ("$A ${} ${1} ${x y} ${A", &[]),
        ] {
            assert_eq!(names(text).collect::<Vec<_>>(), expect, "{text}");
        }
    }

    /// SPEC 6.9, 10.4: what is wrong is named.
    #[test]
    fn mistakes() {
        assert_eq!(expanded("${B}"), Err(ExpandError::Unset("B".to_owned())));
        assert_eq!(
            expanded("${B}").unwrap_err().to_string(),
            "${B} is not set; export it, or write ${B:-default}"
        );
        for text in ["${A", "${}", "${1A}", "${A B}", "${${A}}"] {
            assert!(matches!(expanded(text), Err(ExpandError::Malformed(_))), "{text}");
        }
    }
}
