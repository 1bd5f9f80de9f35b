//! What `aish config show` prints: every setting in force as a line of TOML, with where it comes from as a comment, and secrets
//! hidden (SPEC 10.1, 10.5).

use super::error::Origin;
use super::layers::Layers;
use super::settings::{Kind, SETTINGS, Secrecy, Setting, find};
use super::value::{Value, toml_path, toml_text};
use aish_core::sanitize;
use aish_core::secret::Secret;

/// The configuration in force. The text is TOML again, but for the hidden secrets.
pub fn show(layers: &Layers) -> String {
    let lines: Vec<(String, String)> = paths(layers).iter().filter_map(|path| line(layers, path)).collect();
    let width = lines
        .iter()
        .map(|(line, _)| line.chars().count())
        .filter(|width| *width <= COLUMN_MAX)
        .max();
    let width = width.unwrap_or(0);
    let lines = lines
        .iter()
        .map(|(line, origin)| format!("{line:width$}  # {origin}\n"));
    lines.collect()
}

/// What starts a server.
const COMMAND: &str = "mcp.servers.<alias>.command";
/// Lines longer than this many characters do not push the comments of the others to the right.
const COLUMN_MAX: usize = 60;

/// Everything that has a value, in the order of the reference, tables with a name in the order they were written.
fn paths(layers: &Layers) -> Vec<Vec<String>> {
    let owned = |setting: &Setting| -> Vec<String> { setting.segments().map(str::to_owned).collect() };
    let mut paths: Vec<Vec<String>> = SETTINGS
        .iter()
        .filter(|setting| !setting.is_named())
        .map(owned)
        .collect();
    for named in &layers.named {
        for setting in SETTINGS.iter().filter(|setting| setting.begins_with(&named.path)) {
            let mut path = named.path.clone();
            path.extend(setting.segments().skip(named.path.len()).map(str::to_owned));
            paths.push(path);
        }
    }
    // What is left are maps whose keys the user chose: headers, variables, approvals.
    let maps = layers.values.keys().filter(|path| !paths.contains(path)).cloned();
    let maps: Vec<Vec<String>> = maps.collect();
    paths.extend(maps);
    paths
}

fn line(layers: &Layers, path: &[String]) -> Option<(String, String)> {
    let setting = find(path)?;
    let value = match setting.secrecy {
        Secrecy::Open => without_secrets(setting, layers.get(path)?).to_toml(),
        Secrecy::Secret => layers.get(path).map(|_| toml_text(Secret::REDACTED))?,
    };
    let value = sanitize::single_line(&value).into_owned();
    let origins = layers.origins(path);
    let origin = match origins.as_slice() {
        [] => Origin::Default.to_string(),
        origins => origins.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
    };
    Some((format!("{} = {value}", toml_path(path)), origin))
}

/// A value as it is shown: an address without the keys in its query, a command without those among its arguments.
fn without_secrets(setting: &Setting, value: Value) -> Value {
    match value {
        Value::Text(url) if setting.kind == Kind::Url => Value::Text(url_without_secrets(&url)),
        Value::Texts(words) if setting.key == COMMAND => Value::Texts(crate::mcp::arguments::shown(&words)),
        Value::Text(_) | Value::Texts(_) | Value::Bool(_) | Value::Integer(_) | Value::Float(_) => value,
    }
}

fn url_without_secrets(url: &str) -> String {
    let secrets = aish_provider::http::secrets_of(url);
    let hide = |url: String, secret: &String| url.replace(secret, Secret::REDACTED);
    secrets.iter().fold(url.to_owned(), hide)
}
