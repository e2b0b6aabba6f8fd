//! Figures in readable form.

use indicatif::{DecimalBytes, HumanDuration};
use serde_json::Value;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The maximum number of consecutive values that are shown. JSON has all.
const MAX_VALUES: usize = 24;
/// The maximum number of characters of a text that are shown, because a file may hold megabytes.
const MAX_TEXT: usize = 1_024;

/// One line per figure, followed by one line per item of a list.
pub fn lines(figures: &Value, indent: &str) -> String {
    let mut text = String::new();
    let Some(figures) = figures.as_object() else { return text };
    // The size of nested values depends on the file, so it is limited.
    let most = if indent.is_empty() { usize::MAX } else { MAX_VALUES };
    for (name, value) in figures.iter().filter(|(name, _)| *name != "outcome").take(most) {
        let title = format!("{indent}{}", shown(name.trim_end_matches("_unix_seconds")));
        match value {
            Value::Array(notes) if name == "notes" => {
                notes.iter().filter_map(Value::as_str).for_each(|note| text += &format!("note: {}\n", shown(note)));
            }
            Value::Array(items) if items.iter().any(Value::is_object) => {
                text += &format!("{title}:\n");
                items.iter().for_each(|item| text += &format!("{indent}  {}\n", inline(name, item)));
            }
            Value::Object(_) => text += &format!("{title}:\n{}", lines(value, &format!("{indent}  "))),
            Value::Array(values) => text += &format!("{title}: {}\n", row(name, values)),
            Value::String(value) => text += &format!("{title}: {}\n", shown(value)),
            Value::Null => {}
            _ => text += &format!("{title}: {}\n", inline(name, value)),
        }
    }
    if figures.len() > most {
        text += &format!("{indent}{} more\n", figures.len() - most);
    }
    text
}

fn row(name: &str, values: &[Value]) -> String {
    let mut shown: Vec<String> = values.iter().take(MAX_VALUES).map(|value| inline(name, value)).collect();
    if values.len() > MAX_VALUES {
        shown.push(format!("{} more", values.len() - MAX_VALUES));
    }
    shown.join(", ")
}

/// A value on one line. The name contains the unit.
fn inline(name: &str, value: &Value) -> String {
    let seconds = || Duration::from_secs(value.as_u64().unwrap_or_default());
    match value {
        Value::Number(_) if name.ends_with("_unix_seconds") => {
            let age = SystemTime::now().duration_since(UNIX_EPOCH + seconds()).unwrap_or_default();
            format!("{} ago", HumanDuration(age))
        }
        Value::Number(_) if name.ends_with("seconds") => HumanDuration(seconds()).to_string(),
        Value::Number(bytes) if name.starts_with("bytes") => {
            bytes.as_u64().map_or_else(|| bytes.to_string(), |bytes| DecimalBytes(bytes).to_string())
        }
        Value::String(text) => format!("\"{}\"", shown(text)),
        Value::Array(values) => format!("[{}]", row(name, values)),
        Value::Object(figures) => {
            let is_listed = |value: &Value| !matches!(value, Value::Null | Value::Bool(false));
            let figures = figures.iter().filter(|(_, value)| is_listed(value));
            let text = figures.map(|(name, value)| format!("{} {}", shown(name), inline(name, value)));
            text.collect::<Vec<_>>().join(", ")
        }
        other => other.to_string(),
    }
}

/// A text from a file or a world, made printable and short.
fn shown(text: &str) -> String {
    let printable = |character: char| match character {
        '"' | '\'' => character.to_string(),
        other => other.escape_debug().to_string(),
    };
    let rest = if text.chars().nth(MAX_TEXT).is_some() { ".." } else { "" };
    text.chars().take(MAX_TEXT).map(printable).collect::<String>() + rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn each_figure_has_a_line_and_texts_of_files_are_printable_and_short() {
        let names: Vec<String> = (0..100).map(|number| format!("game:{number}")).collect();
        let figures = json!({
            "outcome": "finished",
            "bytes": 5_000,
            "name": "a\u{1b}[31m\n".to_owned() + &"b".repeat(5_000),
            "nobody": null,
            "blocks": { "game:a\nb": 3 },
            "names": names,
            "players": [{ "name": "Alice", "block": [1, 2, 3], "damaged": false }],
            "notes": ["it \"works\""],
        });
        let text = lines(&figures, "");
        assert!(text.contains("bytes: 5.00 kB\n") && text.contains("blocks:\n  game:a\\nb: 3\n"), "{text}");
        assert!(text.contains("players:\n  name \"Alice\", block [1, 2, 3]\n"), "{text}");
        assert!(text.contains("note: it \"works\"\n") && text.contains(", 76 more\n"), "{text}");
        assert!(!text.contains('\u{1b}') && !text.contains("nobody") && !text.contains("outcome"), "{text}");
        assert!(text.lines().count() == 8 && text.len() < 3_000, "{text}");
    }
}
