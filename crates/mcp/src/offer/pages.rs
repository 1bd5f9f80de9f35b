//! A list of a server, page by page: bounded in pages, items, bytes and time, whatever the server says.

use super::remarks::{Remarks, shown};
use crate::{ErrorKind, McpError, Peer};
use serde_json::{Map, Value};
use std::collections::HashSet;
use std::time::Duration;
use tokio::time::Instant;

/// Pages of one list.
const PAGES_MAX: usize = 100;
/// Items of one list.
pub(crate) const ITEMS_MAX: usize = 2_000;
/// Bytes of all that is kept of one list.
const LIST_BYTES_MAX: usize = 8 << 20;
/// Bytes of a cursor that is sent back.
const CURSOR_BYTES_MAX: usize = 16 << 10;
/// How many times the patience of one request all pages together may take.
const LIST_PATIENCE_FACTOR: u32 = 3;

/// The code of a method a server does not know (JSON-RPC 2.0, section 5.1).
const METHOD_NOT_FOUND: i64 = -32601;

/// Something that a server lists.
pub(crate) trait Listed: Sized {
    /// The method, e.g. `tools/list`.
    const METHOD: &'static str;
    /// The field of the result that holds the list; also the capability that announces it.
    const FIELD: &'static str;
    /// The capability that announces it.
    const CAPABILITY: &'static str;
    /// One of them, in a remark.
    const NOUN: &'static str;

    /// Reads an item.
    ///
    /// # Errors
    /// Why it is left out, as a remark.
    fn read(item: &Value, remarks: &mut Remarks) -> Result<Self, String>;

    /// What no two of them share.
    fn key(&self) -> &str;

    /// About how many bytes it keeps.
    fn bytes(&self) -> usize;
}

/// Fetches all pages. A server that neither announces the list nor knows the method has an empty one.
///
/// # Errors
/// There is no first page, or the connection ended. Whatever goes wrong later ends the list with a remark.
pub(crate) async fn list<T: Listed>(
    peer: &dyn Peer,
    patience: Duration,
    remarks: &mut Remarks,
) -> Result<Vec<T>, McpError> {
    let mut list = List::default();
    let deadline = Instant::now() + patience.saturating_mul(LIST_PATIENCE_FACTOR);
    let mut cursor: Option<String> = None;
    for page_number in 0..PAGES_MAX {
        let mut params = Map::new();
        if let Some(cursor) = &cursor {
            params.insert("cursor".to_owned(), Value::String(cursor.clone()));
        }
        let page = match peer.request(T::METHOD, params, patience, None).await {
            Ok(page) => page,
            Err(error) if page_number == 0 && is_absent::<T>(peer, &error) => return Ok(Vec::new()),
            Err(error) if page_number == 0 || error.is_connection() => return Err(error),
            Err(error) => {
                remarks.push(format!("{} ended early: {}", T::METHOD, shown(&error.message)));
                return Ok(list.items);
            }
        };
        let Some(items) = items_of(&page, T::FIELD) else {
            let message = format!("{} was answered without a list of {}", T::METHOD, T::FIELD);
            if page_number == 0 {
                return Err(McpError::new(ErrorKind::Protocol, message));
            }
            remarks.push(message);
            return Ok(list.items);
        };
        // Servers that mean "no more" by an empty cursor answer it with their first page again.
        let is_after_empty = cursor.as_deref() == Some("");
        if is_after_empty && list.begins_with(items) {
            return Ok(list.items);
        }
        if let Err(reason) = list.extend(items, remarks) {
            remarks.push(reason);
            return Ok(list.items);
        }
        cursor = match list.next_cursor(&page, T::METHOD) {
            Ok(Some(next)) => Some(next),
            Ok(None) => return Ok(list.items),
            Err(reason) => {
                remarks.push(reason);
                return Ok(list.items);
            }
        };
        if Instant::now() >= deadline {
            remarks.push(format!("{} took too long: the rest is left out", T::METHOD));
            return Ok(list.items);
        }
    }
    remarks.push(format!(
        "{} has more than {PAGES_MAX} pages: the rest is left out",
        T::METHOD
    ));
    Ok(list.items)
}

/// True when the server simply has no such list.
fn is_absent<T: Listed>(peer: &dyn Peer, error: &McpError) -> bool {
    let is_unknown = matches!(error.kind, ErrorKind::Rpc { code: METHOD_NOT_FOUND });
    is_unknown && !peer.about().offers(T::CAPABILITY)
}

/// The items of a page: a list in its field, or the bare list some servers answer with. A field that is null is empty.
fn items_of<'a>(page: &'a Value, field: &str) -> Option<&'a [Value]> {
    match page {
        Value::Array(items) => Some(items),
        Value::Object(map) => match map.get(field) {
            Some(Value::Array(items)) => Some(items),
            Some(Value::Null) => Some(&[]),
            Some(Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_)) | None => None,
        },
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

/// What was kept of the pages so far.
struct List<T> {
    items: Vec<T>,
    keys: HashSet<String>,
    bytes: usize,
    cursors: HashSet<String>,
    /// The first item of the first page, as it came.
    first: Option<Value>,
}

impl<T> Default for List<T> {
    fn default() -> Self {
        Self {
            items: Vec::new(),
            keys: HashSet::new(),
            bytes: 0,
            cursors: HashSet::new(),
            first: None,
        }
    }
}

impl<T: Listed> List<T> {
    /// True for a page that is the first one again, and for an empty one.
    fn begins_with(&self, page: &[Value]) -> bool {
        page.first() == self.first.as_ref() || page.is_empty()
    }

    /// Adds the items of a page.
    ///
    /// # Errors
    /// A limit is reached: why the rest is left out.
    fn extend(&mut self, page: &[Value], remarks: &mut Remarks) -> Result<(), String> {
        if self.first.is_none() {
            self.first = page.first().cloned();
        }
        for item in page {
            if self.items.len() >= ITEMS_MAX {
                return Err(format!("more than {ITEMS_MAX} {}: the rest is left out", T::FIELD));
            }
            match T::read(item, remarks) {
                Ok(item) if self.keys.contains(item.key()) => {
                    remarks.push(format!(
                        "{} {} is there twice: the first is kept",
                        T::NOUN,
                        shown(item.key())
                    ));
                }
                Ok(item) => {
                    self.bytes = self.bytes.saturating_add(item.bytes());
                    if self.bytes > LIST_BYTES_MAX {
                        return Err(format!(
                            "{} of more than {LIST_BYTES_MAX} bytes: the rest is left out",
                            T::FIELD
                        ));
                    }
                    self.keys.insert(item.key().to_owned());
                    self.items.push(item);
                }
                Err(reason) => remarks.push(reason),
            }
        }
        Ok(())
    }

    /// The cursor of the next page, if there is one.
    ///
    /// # Errors
    /// It leads nowhere: why the list ends here.
    fn next_cursor(&mut self, page: &Value, method: &str) -> Result<Option<String>, String> {
        let cursor = match page.get("nextCursor") {
            Some(Value::String(cursor)) => cursor,
            Some(Value::Null) | None => return Ok(None),
            Some(Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
                return Err(format!("{method} has a cursor that is no text: the rest is left out"));
            }
        };
        if cursor.len() > CURSOR_BYTES_MAX {
            return Err(format!(
                "{method} has a cursor of {} bytes: the rest is left out",
                cursor.len()
            ));
        }
        if !self.cursors.insert(cursor.clone()) {
            return Err(format!("{method} repeats a cursor: the rest is left out"));
        }
        Ok(Some(cursor.clone()))
    }
}
