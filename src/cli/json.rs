//! JSON output: one document, raw parts of others kept as received, and nothing in it that could drive a
//! terminal: DEL, C1, bidi and zero-width characters are written as JSON's own `\u` escapes.

use crate::json::raw;
use crate::text::is_hidden;
use serde::Serialize;
use serde_json::ser::{CompactFormatter, Formatter, PrettyFormatter};
use serde_json::value::RawValue;
use std::io::{self, Write};

/// A raw JSON text of others as a value; what is no JSON becomes a string.
pub fn raw_value(text: &str) -> Option<Box<RawValue>> {
    RawValue::from_string(text.trim().to_owned())
        .or_else(|_| RawValue::from_string(raw::quote(text)))
        .ok()
}

/// `value` as one pretty document with a newline at its end.
pub fn document(value: &impl Serialize) -> String {
    render(value, PrettyFormatter::new())
}

/// `value` as one pretty document straight to stdout, for what is too large to be held; a reader that is gone ends it.
pub fn write_document(value: &impl Serialize) {
    let mut out = io::BufWriter::with_capacity(1 << 16, Out);
    let mut ser = serde_json::Serializer::with_formatter(&mut out, Safe(PrettyFormatter::new()));
    // What can't be written is told by the one place that writes.
    if value.serialize(&mut ser).is_ok() {
        out.write_all(b"\n").and_then(|()| out.flush()).ok();
    }
}

/// Stdout, by the one way that reports go.
struct Out;

impl Write for Out {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match super::plain::print_bytes(bytes) {
            true => Ok(bytes.len()),
            false => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// `value` as one line, with a newline at its end.
pub fn line(value: &impl Serialize) -> String {
    render(value, CompactFormatter)
}

fn render(value: &impl Serialize, inner: impl Formatter) -> String {
    let mut out = Vec::new();
    let mut ser = serde_json::Serializer::with_formatter(&mut out, Safe(inner));
    // Writing to memory can't fail, and our own types hold no maps with odd keys.
    if value.serialize(&mut ser).is_err() {
        return "{}\n".into();
    }
    out.push(b'\n');
    String::from_utf8(out).unwrap_or_default()
}

/// Lines of JSON as they are, but for what could drive a terminal: it can only stand inside strings, where its escape
/// means the same.
pub fn safe_lines(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len());
    for line in text.lines() {
        // Writing to memory can't fail.
        write_safe(&mut out, line).ok();
        out.push(b'\n');
    }
    String::from_utf8(out).unwrap_or_default()
}

/// A formatter that escapes what a terminal could act on. In JSON such characters can only stand inside
/// strings, so the same rule serves for raw parts.
struct Safe<F>(F);

fn write_safe<W: ?Sized + Write>(w: &mut W, fragment: &str) -> io::Result<()> {
    let mut from = 0;
    for (at, c) in fragment.char_indices() {
        // Between tokens JSON allows CR, LF and tabs, which would move a terminal's cursor; inside strings
        // they can't stand unescaped.
        if matches!(c, '\r' | '\n' | '\t') {
            w.write_all(&fragment.as_bytes()[from..at])?;
            w.write_all(b" ")?;
            from = at + 1;
        } else if c == '\u{7f}' || (!c.is_ascii() && is_hidden(c)) {
            w.write_all(&fragment.as_bytes()[from..at])?;
            for unit in c.encode_utf16(&mut [0; 2]) {
                write!(w, "\\u{unit:04x}")?;
            }
            from = at + c.len_utf8();
        }
    }
    w.write_all(&fragment.as_bytes()[from..])
}

impl<F: Formatter> Formatter for Safe<F> {
    fn write_string_fragment<W: ?Sized + Write>(
        &mut self,
        w: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        write_safe(w, fragment)
    }
    fn write_raw_fragment<W: ?Sized + Write>(
        &mut self,
        w: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        write_safe(w, fragment)
    }
    fn begin_array<W: ?Sized + Write>(&mut self, w: &mut W) -> io::Result<()> {
        self.0.begin_array(w)
    }
    fn end_array<W: ?Sized + Write>(&mut self, w: &mut W) -> io::Result<()> {
        self.0.end_array(w)
    }
    fn begin_array_value<W: ?Sized + Write>(&mut self, w: &mut W, first: bool) -> io::Result<()> {
        self.0.begin_array_value(w, first)
    }
    fn end_array_value<W: ?Sized + Write>(&mut self, w: &mut W) -> io::Result<()> {
        self.0.end_array_value(w)
    }
    fn begin_object<W: ?Sized + Write>(&mut self, w: &mut W) -> io::Result<()> {
        self.0.begin_object(w)
    }
    fn end_object<W: ?Sized + Write>(&mut self, w: &mut W) -> io::Result<()> {
        self.0.end_object(w)
    }
    fn begin_object_key<W: ?Sized + Write>(&mut self, w: &mut W, first: bool) -> io::Result<()> {
        self.0.begin_object_key(w, first)
    }
    fn begin_object_value<W: ?Sized + Write>(&mut self, w: &mut W) -> io::Result<()> {
        self.0.begin_object_value(w)
    }
    fn end_object_value<W: ?Sized + Write>(&mut self, w: &mut W) -> io::Result<()> {
        self.0.end_object_value(w)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_text_is_escaped_in_our_strings_and_in_raw_parts() {
        #[derive(Serialize)]
        struct Doc {
            mine: String,
            theirs: Option<Box<RawValue>>,
        }
        let nasty = "a\u{9b}31m\u{202e}\u{7f}\u{1b}[0m\u{e0041}日";
        let theirs = raw_value("{\r\n\t\"x\": \"\u{202e}\u{85}\", \"n\": 1.50}");
        let text = line(&Doc { mine: nasty.into(), theirs });
        assert!(
            !text.trim_end().chars().any(|c| c.is_control() || is_hidden(c) && !c.is_ascii()),
            "{text:?}"
        );
        assert!(text.contains(r#""n": 1.50"#) && text.contains(r"\u202e\u0085"), "{text}");
        assert_eq!(raw::get_str(&text, "mine").as_deref(), Some(nasty));
    }
}
