//! How much of a long result a model sees: head and tail, with the cut stated (SPEC 4.3).
//!
//! The cut depends on the result and the bound alone, so that the same result looks the same in every request.

use serde_json::{Map, Value};

/// Room for the line that states the cut, in characters.
const NOTICE_CHARS: usize = 140;

/// What a model sees of a result: whole if it has at most `chars_max` characters, or head and tail with the cut stated and
/// how to read on. In a built-in tool's JSON it is the `output` text that is cut, so that the rest stays readable. A bound
/// too small for a useful cut is exceeded by the line that states it.
pub fn cut_result(output: &str, chars_max: usize) -> String {
    // Bytes are never fewer than characters: the cheap test settles nearly all.
    if output.len() <= chars_max || output.chars().count() <= chars_max {
        return output.to_owned();
    }
    if output.starts_with('{')
        && let Ok(object) = serde_json::from_str::<Map<String, Value>>(output)
        && let Some(cut) = cut_output_field(object, chars_max)
    {
        return cut;
    }
    cut_text(output, chars_max, |_| 1)
}

/// `None` when cutting `output` would not bring the object within the bound.
fn cut_output_field(mut object: Map<String, Value>, chars_max: usize) -> Option<String> {
    let Some(Value::String(text)) = object.insert("output".to_owned(), Value::String(String::new())) else {
        return None;
    };
    let frame = Value::Object(object.clone()).to_string().chars().count();
    let room = chars_max.checked_sub(frame).filter(|room| *room > NOTICE_CHARS)?;
    object.insert("output".to_owned(), Value::String(cut_text(&text, room, json_width)));
    Some(Value::Object(object).to_string())
}

/// How many characters a character takes inside a JSON string.
fn json_width(char: char) -> usize {
    match char {
        '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
        '\0'..='\u{1f}' => 6,
        _ => 1,
    }
}

fn cut_text(text: &str, room: usize, width: fn(char) -> usize) -> String {
    let total_width: usize = text.chars().map(width).sum();
    if total_width <= room {
        return text.to_owned();
    }
    let room = room.saturating_sub(NOTICE_CHARS).max(room / 2);
    let head_room = room / 3 * 2;
    let from_start = text.char_indices().map(|(at, char)| (at + char.len_utf8(), char));
    let (head, rest) = text.split_at(fitting(from_start, head_room, width));
    let from_end = rest.char_indices().rev().map(|(at, char)| (rest.len() - at, char));
    let (left_out, tail) = rest.split_at(rest.len() - fitting(from_end, room - head_room, width));
    format!(
        "{head}\n[... {} of {} characters left out; ask for a part (a range, a filter) to see them ...]\n{tail}",
        left_out.chars().count(),
        text.chars().count(),
    )
}

/// Bytes of as many characters as fit. Each comes with how many bytes there are up to and with it, counted from the side the
/// characters come from.
fn fitting(chars: impl Iterator<Item = (usize, char)>, room: usize, width: fn(char) -> usize) -> usize {
    let mut used = 0;
    let mut bytes = 0;
    for (bytes_with_it, char) in chars {
        used += width(char);
        if used > room {
            break;
        }
        bytes = bytes_with_it;
    }
    bytes
}
