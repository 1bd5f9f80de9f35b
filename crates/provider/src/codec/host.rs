//! Whose endpoint it is, as far as its address tells: what a request holds depends on it where servers that speak one format
//! differ and no answer would say how.

use std::net::IpAddr;

/// The hosts at which OpenAI's own rules hold.
const OPENAI_HOSTS: &[&str] = &["api.openai.com", ".openai.azure.com"];

/// True for an address of this machine or its network: there are the servers of open models (llama.cpp, Ollama, vLLM,
/// LM Studio), which ignore fields that they do not know.
pub(super) fn is_nearby(base_url: &str) -> bool {
    let Ok(url) = reqwest::Url::parse(base_url) else {
        return false;
    };
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    match host.parse() {
        Ok(IpAddr::V4(address)) => address.is_loopback() || address.is_private(),
        Ok(IpAddr::V6(address)) => address.is_loopback() || address.is_unique_local(),
        Err(_) => host == "localhost" || host.ends_with(".local"),
    }
}

/// True for OpenAI's own endpoints.
pub(super) fn is_openai(base_url: &str) -> bool {
    let rest = base_url.split_once("://").map_or(base_url, |(_, rest)| rest);
    let host = rest.split(['/', ':', '?']).next().unwrap_or_default();
    OPENAI_HOSTS.iter().any(|owner| host.ends_with(owner))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn openai() {
        for url in [
            "https://api.openai.com/v1",
            "https://eu.api.openai.com/v1",
            "https://x.openai.azure.com/openai/v1",
        ] {
            assert!(is_openai(url), "{url}");
        }
        for url in [
            "http://127.0.0.1:8080/v1",
            "https://example.com/api.openai.com",
            "",
            "https://api.openai.com.evil/v1",
        ] {
            assert!(!is_openai(url), "{url}");
        }
    }

    #[test]
    fn nearby() {
        for url in [
            "http://127.0.0.1:8080/v1",
            "http://[::1]:8080",
            "http://192.168.1.9/v1",
            "http://10.0.0.1",
            "http://localhost:11434/v1",
            "http://box.local:1234/v1",
        ] {
            assert!(is_nearby(url), "{url}");
        }
        for url in ["https://api.openai.com/v1", "http://8.8.8.8/v1", "localhost", ""] {
            assert!(!is_nearby(url), "{url}");
        }
    }
}
