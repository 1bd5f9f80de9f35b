//! What stands behind the `?` of a path: known names, each once.

use crate::error::{ApiError, ErrorKind};
use crate::json::nearest;
use std::collections::BTreeMap;
use url::form_urlencoded;

/// Characters of one value.
pub(crate) const VALUE_CHARS_MAX: usize = 1_000;

/// The parameters of a query, by name.
#[derive(Debug)]
pub(crate) struct Query(BTreeMap<String, String>);

impl Query {
    /// Reads a query whose parameters are among `known`.
    pub(crate) fn read(query: Option<&str>, known: &[&str]) -> Result<Self, ApiError> {
        let mut all = BTreeMap::new();
        for (name, value) in form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
            if !known.contains(&name.as_ref()) {
                let error = wrong(format!("unknown parameter `{}`", short(&name)));
                return Err(match nearest(&name, known.iter().copied()) {
                    Some(meant) => error.hint(format!("did you mean `{meant}`?")),
                    None => error,
                });
            }
            if value.chars().nth(VALUE_CHARS_MAX).is_some() {
                return Err(wrong(format!("`{name}` is longer than {VALUE_CHARS_MAX} characters")));
            }
            if all.insert(name.to_string(), value.into_owned()).is_some() {
                return Err(wrong(format!("`{name}` is there twice")));
            }
        }
        Ok(Self(all))
    }

    /// A text; one that is empty is as none.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str).filter(|text| !text.is_empty())
    }

    /// A whole number within these bounds.
    pub(crate) fn number(&self, name: &str, (least, most): (u64, u64)) -> Result<Option<u64>, ApiError> {
        let Some(text) = self.0.get(name) else {
            return Ok(None);
        };
        match text.parse::<u64>() {
            Ok(number) if (least..=most).contains(&number) => Ok(Some(number)),
            Ok(_) | Err(_) => Err(wrong(format!(
                "`{name}` must be a whole number from {least} to {most}, not `{}`",
                short(text)
            ))),
        }
    }
}

fn wrong(message: String) -> ApiError {
    ApiError::new(ErrorKind::InvalidRequest, message)
}

/// The beginning of what a client wrote.
fn short(text: &str) -> String {
    text.chars().take(60).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// SPEC 9.8: parameters are read whatever their encoding; what is unknown, twice, too long or no number is refused.
    #[test]
    fn parameters() {
        let read = |query: &str| Query::read(Some(query), &["query", "limit"]);
        let good = read("query=a+b%22%C3%A9&limit=7").unwrap();
        assert_eq!(good.text("query"), Some("a b\"é"));
        assert_eq!(good.number("limit", (1, 9)).unwrap(), Some(7));
        assert_eq!(read("query=").unwrap().text("query"), None);
        assert_eq!(Query::read(None, &[]).unwrap().text("query"), None);
        for number in ["0", "10", "-1", "many", "", "99999999999999999999999"] {
            let query = read(&format!("limit={number}")).unwrap();
            assert_eq!(
                query.number("limit", (1, 9)).unwrap_err().kind(),
                ErrorKind::InvalidRequest,
                "{number}"
            );
        }
        let unknown = format!("{:?}", read("limt=1").unwrap_err());
        assert!(
            unknown.contains("unknown parameter `limt`") && unknown.contains("`limit`?"),
            "{unknown}"
        );
        assert!(read("limit=1&limit=2").is_err());
        assert!(read(&format!("query={}", "x".repeat(2_000))).is_err());
    }
}
