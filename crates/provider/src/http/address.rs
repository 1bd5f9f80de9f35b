//! Where a request goes: the base address, as people write it, and the path of the format behind it.
//!
//! The configuration wants what the official SDKs want (SPEC 7.1), and people write what they have at hand: with `/v1` or
//! without, or the whole endpoint copied from a manual, or with a query that every request needs (Azure).

/// What people write behind the origin of Google's API, the longest first: its versions, the folder of models, and the place
/// where it speaks another format.
const GEMINI_ENDS: &[&str] = &["/v1beta/openai", "/v1beta/models", "/v1beta", "/v1/models", "/v1"];

/// What every path of that API begins with.
const GEMINI_BEGIN: &str = "/v1beta/models/";

/// The address of a request.
pub(crate) fn endpoint(base_url: &str, path: &str) -> String {
    let (base, base_query) = base_url.trim().split_once('?').unwrap_or((base_url.trim(), ""));
    let (path, path_query) = path.split_once('?').unwrap_or((path, ""));
    let is_there = base_query.split('&').any(|pair| pair == path_query);
    let path_query = if is_there { "" } else { path_query };
    let base = base.trim_end_matches('/');
    let version = path.trim_start_matches('/').split('/').next().unwrap_or_default();
    let is_version = version.starts_with('v') && version.chars().nth(1).is_some_and(|digit| digit.is_ascii_digit());
    let base = if base.ends_with(path) {
        base.strip_suffix(path)
    } else if path.starts_with(GEMINI_BEGIN) {
        let mut ends = GEMINI_ENDS.iter().filter_map(|end| base.strip_suffix(end));
        ends.next().filter(|base| !base.ends_with('/'))
    } else if is_version {
        // The version may be the name of the host, though hardly ever.
        let before = base.strip_suffix(version).and_then(|base| base.strip_suffix('/'));
        before.filter(|base| !base.ends_with('/'))
    } else {
        None
    }
    .unwrap_or(base);
    let mut url = format!("{base}{path}");
    for (query, sign) in [(base_query, '?'), (path_query, '&')] {
        if !query.is_empty() {
            url.push(if url.contains('?') { sign } else { '?' });
            url.push_str(query);
        }
    }
    url
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(base_url: &str, path: &str, expect: &str) {
        assert_eq!(endpoint(base_url, path), expect);
    }

    /// SPEC 7.1: whatever of the address people wrote, nothing of it is there twice.
    #[test]
    fn whatever_people_write() {
        let chat = "/chat/completions";
        check("http://desk:8080/v1", chat, "http://desk:8080/v1/chat/completions");
        check(" http://desk:8080/v1/ ", chat, "http://desk:8080/v1/chat/completions");
        check(
            "http://desk:8080/v1/chat/completions",
            chat,
            "http://desk:8080/v1/chat/completions",
        );
        let messages = "/v1/messages";
        for base in [
            "https://h",
            "https://h/",
            "https://h/v1",
            "https://h/v1/",
            "https://h/v1/messages",
        ] {
            check(base, messages, "https://h/v1/messages");
        }
        check("https://h/proxy", messages, "https://h/proxy/v1/messages");
        let gemini = "/v1beta/models/m:streamGenerateContent?alt=sse";
        for base in [
            "https://h",
            "https://h/v1",
            "https://h/v1/models/",
            "https://h/v1beta",
            "https://h/v1beta/",
            "https://h/v1beta/models",
            "https://h/v1beta/openai/",
            "https://h/v1beta/models/m:streamGenerateContent?alt=sse",
        ] {
            check(base, gemini, "https://h/v1beta/models/m:streamGenerateContent?alt=sse");
        }
        check(
            "https://h/gemini",
            gemini,
            "https://h/gemini/v1beta/models/m:streamGenerateContent?alt=sse",
        );
        check(
            "https://v1beta",
            gemini,
            "https://v1beta/v1beta/models/m:streamGenerateContent?alt=sse",
        );
        check("https://v1", messages, "https://v1/v1/messages");
    }

    /// SPEC 7.1: a query that belongs to the address stays behind it.
    #[test]
    fn queries() {
        check(
            "https://h/d?api-version=1",
            "/chat/completions",
            "https://h/d/chat/completions?api-version=1",
        );
        check("https://h?a=1", "/v1/x?alt=sse", "https://h/v1/x?a=1&alt=sse");
    }
}
