//! A JSON text as lines that can be folded, searched and looked at raw. One pass over the bytes makes a flat index of
//! lines (two numbers and a depth each); nothing is parsed into values, so numbers, order and escapes stay as they
//! came, and 50 MB are a matter of a moment. Text that is no JSON is shown as its lines.
//!
//! Pure. Drawing asks for the few lines it shows.

use std::collections::HashSet;
use std::sync::Arc;

/// Nesting that is shown as such; deeper values stay on one line.
const DEPTH: u16 = 500;
/// Longest piece of one line that is handed to drawing, in bytes.
const PIECE: usize = 4_096;
/// Lines of more text than this are cut in raw view, in bytes.
const RAW: usize = 400;

/// One line: a piece of the text at a depth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Piece {
    from: u32,
    to: u32,
    depth: u16,
    /// For an opening bracket: how many lines on its closing one is; else 0.
    span: u32,
}

/// The text and its two indexes; shared, since a frame must not copy it.
#[derive(Debug, PartialEq, Eq)]
pub struct Document {
    /// What it is: `result of night-005`.
    pub title: String,
    pub text: String,
    tree: Vec<Piece>,
    raw: Vec<Piece>,
    /// It is JSON.
    pub is_json: bool,
}

impl Document {
    /// Indexes a text. Costs one pass; meant for a thread that may block. Texts of 4 GB and more are cut.
    pub fn new(title: String, mut text: String) -> Document {
        if text.len() >= u32::MAX as usize {
            let mut at = u32::MAX as usize - 8;
            while !text.is_char_boundary(at) {
                at -= 1;
            }
            text.truncate(at);
        }
        let raw = raw(&text);
        let tree = tree(&text);
        let is_json = tree.is_some();
        let tree = tree.unwrap_or_default();
        Document { title, text, tree, raw, is_json }
    }
}

/// Lines of the text as it is, long ones in pieces.
fn raw(text: &str) -> Vec<Piece> {
    let mut out = Vec::new();
    let mut at = 0;
    for line in text.split('\n') {
        let end = at + line.len();
        let mut from = at;
        loop {
            let mut to = (from + RAW).min(end);
            while !text.is_char_boundary(to) {
                to -= 1;
            }
            out.push(Piece { from: from as u32, to: to as u32, depth: 0, span: 0 });
            from = to;
            if from >= end {
                break;
            }
        }
        at = end + 1;
    }
    out
}

/// `None` for what is no JSON value.
fn tree(text: &str) -> Option<Vec<Piece>> {
    let bytes = text.as_bytes();
    let first = bytes.iter().find(|b| !b.is_ascii_whitespace())?;
    if !matches!(first, b'{' | b'[') {
        return None;
    }
    let mut out: Vec<Piece> = Vec::with_capacity(bytes.len() / 32);
    let mut open: Vec<usize> = Vec::new();
    let mut start: Option<usize> = None;
    let mut i = 0;
    // Depth beyond what is shown: counted only.
    let mut beyond = 0u32;
    let blank =
        |from: usize| bytes[from..].iter().position(|b| !b.is_ascii_whitespace()).map(|n| from + n);
    while let Some(b) = bytes.get(i).copied() {
        match b {
            b'"' => {
                start.get_or_insert(i);
                i += 1;
                loop {
                    match bytes.get(i)? {
                        b'"' => break,
                        b'\\' => i += 2,
                        _ => i += 1,
                    }
                }
                i += 1;
            }
            b'{' | b'[' => {
                let from = *start.get_or_insert(i);
                i += 1;
                let next = blank(i)?;
                if beyond > 0 || open.len() >= usize::from(DEPTH) {
                    beyond += 1;
                } else if bytes[next] == b + 2 {
                    // An empty one stays on its line.
                    i = next + 1;
                    if open.is_empty() {
                        out.push(piece(bytes, from, i, 0));
                        return blank(i).is_none().then_some(out);
                    }
                } else {
                    out.push(Piece {
                        from: from as u32,
                        to: i as u32,
                        depth: open.len() as u16,
                        span: 0,
                    });
                    open.push(out.len() - 1);
                    start = None;
                }
            }
            b'}' | b']' if beyond > 0 => {
                beyond -= 1;
                i += 1;
            }
            b'}' | b']' => {
                if let Some(from) = start.take() {
                    out.push(piece(bytes, from, i, open.len()));
                }
                let opened = open.pop()?;
                if bytes[out[opened].to as usize - 1] + 2 != b {
                    return None;
                }
                out[opened].span = (out.len() - opened) as u32;
                start = Some(i);
                i += 1;
                if open.is_empty() {
                    let end = i;
                    out.push(piece(bytes, start.take()?, end, 0));
                    return blank(end).is_none().then_some(out);
                }
            }
            b',' if beyond == 0 => {
                i += 1;
                let from = start.take()?;
                out.push(piece(bytes, from, i, open.len()));
            }
            b if b.is_ascii_whitespace() => i += 1,
            _ => {
                start.get_or_insert(i);
                i += 1;
            }
        }
    }
    None
}

fn piece(bytes: &[u8], from: usize, mut to: usize, depth: usize) -> Piece {
    while to > from && bytes[to - 1].is_ascii_whitespace() {
        to -= 1;
    }
    Piece { from: from as u32, to: to as u32, depth: depth as u16, span: 0 }
}

/// One line for drawing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown<'a> {
    pub depth: usize,
    /// The text of the line, as received, cut where it is very long.
    pub text: &'a str,
    /// Bytes of it that are left out.
    pub left_out: usize,
    /// What begins here can be folded, and is.
    pub fold: Option<bool>,
    /// Lines hidden by its fold.
    pub hidden: usize,
}

/// A document being looked at.
#[derive(Debug)]
pub struct View {
    pub document: Arc<Document>,
    folded: HashSet<u32>,
    /// The lines that are not hidden; kept up by folding.
    lines: Vec<u32>,
    /// The selected line among them, and the first on the screen.
    pub at: usize,
    pub raw: bool,
    /// What is searched; and whether it is being typed.
    pub query: String,
    pub typing: bool,
}

impl View {
    /// Unfolded, at its first line.
    pub fn new(document: Arc<Document>) -> View {
        let raw = !document.is_json;
        let mut view = View {
            document,
            folded: HashSet::new(),
            lines: Vec::new(),
            at: 0,
            raw,
            query: String::new(),
            typing: false,
        };
        view.arrange();
        view
    }

    /// Lines that can be seen by scrolling.
    pub fn len(&self) -> usize {
        if self.raw { self.document.raw.len() } else { self.lines.len() }
    }
    /// No line at all.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn piece(&self, at: usize) -> Option<Piece> {
        match self.raw {
            true => self.document.raw.get(at).copied(),
            false => self.document.tree.get(*self.lines.get(at)? as usize).copied(),
        }
    }

    /// The line at `at`.
    pub fn line(&self, at: usize) -> Option<Shown<'_>> {
        let p = self.piece(at)?;
        let (from, to) = (p.from as usize, p.to as usize);
        let mut cut = to.min(from + PIECE);
        while !self.document.text.is_char_boundary(cut) {
            cut -= 1;
        }
        let folded = !self.raw && self.folded.contains(self.lines.get(at)?);
        Some(Shown {
            depth: usize::from(p.depth),
            text: self.document.text.get(from..cut)?,
            left_out: to - cut,
            fold: (p.span > 0).then_some(folded),
            hidden: if folded { p.span as usize } else { 0 },
        })
    }

    fn arrange(&mut self) {
        self.lines.clear();
        let tree = &self.document.tree;
        let mut i = 0;
        while i < tree.len() {
            self.lines.push(i as u32);
            i += if self.folded.contains(&(i as u32)) { tree[i].span as usize + 1 } else { 1 };
        }
    }

    /// Folds or unfolds what begins on the selected line, or what that line is in.
    pub fn fold(&mut self) {
        if self.raw {
            return;
        }
        let Some(mut line) = self.lines.get(self.at).copied() else { return };
        let tree = &self.document.tree;
        if tree[line as usize].span == 0 {
            let depth = tree[line as usize].depth;
            let around = self.lines[..=self.at].iter().rev().find(|l| {
                let p = tree[**l as usize];
                p.span > 0 && (p.depth < depth || **l as usize + p.span as usize == line as usize)
            });
            let Some(around) = around.copied() else { return };
            line = around;
        }
        if !self.folded.remove(&line) {
            self.folded.insert(line);
        }
        self.arrange();
        self.at = self.lines.binary_search(&line).unwrap_or(0);
    }

    /// Folds everything below the first level; or unfolds all.
    pub fn fold_all(&mut self) {
        if self.raw {
            return;
        }
        let line = self.lines.get(self.at).copied().unwrap_or(0);
        if self.folded.is_empty() {
            let pieces = self.document.tree.iter().enumerate();
            self.folded =
                pieces.filter(|(_, p)| p.depth == 1 && p.span > 0).map(|(i, _)| i as u32).collect();
        } else {
            self.folded.clear();
        }
        self.arrange();
        self.at = self.lines.binary_search(&line).unwrap_or_else(|i| i.saturating_sub(1));
    }

    /// Raw or tree.
    pub fn turn(&mut self) {
        if !self.document.is_json {
            return;
        }
        let from = self.piece(self.at).map_or(0, |p| p.from);
        self.raw = !self.raw;
        let after = match self.raw {
            true => self.document.raw.partition_point(|p| p.from <= from),
            false => self.lines.partition_point(|l| self.document.tree[*l as usize].from <= from),
        };
        self.at = after.saturating_sub(1);
    }

    /// Moves by lines.
    pub fn step(&mut self, by: isize) {
        self.at = self.at.saturating_add_signed(by).min(self.len().saturating_sub(1));
    }

    /// Goes to the next line that holds the query (ASCII case doesn't matter), round the end; opens folds that hide it.
    /// `here` counts too while typing.
    pub fn seek(&mut self, here: bool) -> bool {
        if self.query.is_empty() {
            return false;
        }
        let Some(p) = self.piece(self.at) else { return false };
        let text = &self.document.text;
        let from = if here { p.from } else { p.to } as usize;
        let hit = find(text, &self.query, from).or_else(|| find(text, &self.query, 0));
        let Some(hit) = hit.map(|h| h as u32) else { return false };
        if self.raw {
            self.at = self.document.raw.partition_point(|p| p.from <= hit).saturating_sub(1);
            return true;
        }
        let line = self.document.tree.partition_point(|p| p.from <= hit).saturating_sub(1) as u32;
        let tree = &self.document.tree;
        let before = self.folded.len();
        self.folded.retain(|f| !(*f < line && line <= *f + tree[*f as usize].span));
        if self.folded.len() != before {
            self.arrange();
        }
        self.at = self.lines.binary_search(&line).unwrap_or(0);
        true
    }
}

/// The first place at or after `from`.
fn find(text: &str, what: &str, from: usize) -> Option<usize> {
    let (hay, needle) = (text.as_bytes().get(from..)?, what.as_bytes());
    let first = *needle.first()?;
    let (a, b) = (first.to_ascii_lowercase(), first.to_ascii_uppercase());
    let mut at = 0;
    while let Some(n) = hay[at..].iter().position(|c| *c == a || *c == b) {
        at += n;
        if hay.get(at..at + needle.len()).is_some_and(|h| h.eq_ignore_ascii_case(needle)) {
            return Some(from + at);
        }
        at += 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn view(text: &str) -> View {
        View::new(Arc::new(Document::new("t".into(), text.into())))
    }

    fn shown(v: &View) -> Vec<String> {
        let line = |i| v.line(i).unwrap();
        (0..v.len()).map(|i| format!("{}{}", " ".repeat(line(i).depth), line(i).text)).collect()
    }

    #[test]
    fn a_value_has_its_lines() {
        let v = view(r#" {"a": 1.0, "b":[1,{"c":"}\"]"},[]],"d":{} } "#);
        let want = [
            "{",
            " \"a\": 1.0,",
            " \"b\":[",
            "  1,",
            "  {",
            "   \"c\":\"}\\\"]\"",
            "  },",
            "  []",
            " ],",
            " \"d\":{}",
            "}",
        ];
        assert_eq!(shown(&v), want);
    }

    #[test]
    fn folding_hides_and_shows_and_keeps_the_place() {
        let mut v = view(r#"{"a":{"x":[1,2]},"b":[3]}"#);
        let all = shown(&v);
        v.at = 3;
        v.fold();
        assert_eq!((v.at, v.line(2).unwrap().fold, v.line(2).unwrap().hidden), (2, Some(true), 3));
        assert_eq!(v.len(), all.len() - 3);
        v.fold();
        assert_eq!(shown(&v), all);
        v.at = 0;
        v.fold_all();
        assert_eq!(shown(&v), ["{", " \"a\":{", " \"b\":[", "}"]);
        v.query = "2".into();
        assert!(v.seek(false));
        assert_eq!(v.line(v.at).unwrap().text, "2");
        v.fold_all();
        assert_eq!(shown(&v), all);
    }

    #[test]
    fn searching_goes_on_from_the_place_and_round() {
        let mut v = view(r#"{"Key":"one","b":"ONE","c":"two"}"#);
        v.query = "one".into();
        for want in ["\"Key\":\"one\",", "\"b\":\"ONE\",", "\"Key\":\"one\","] {
            assert!(v.seek(false));
            assert_eq!(v.line(v.at).unwrap().text, want);
        }
        v.query = "none".into();
        assert!(!v.seek(false));
        // The raw view keeps the place.
        v.turn();
        assert!(v.raw && v.len() == 1);
        v.turn();
        assert_eq!(v.line(v.at).unwrap().text, "{");
    }

    #[test]
    fn what_is_no_json_is_shown_as_it_is() {
        for text in
            ["", "plain words\nand more", "{\"a\":", "{]", "[1] trailing", "{\"a\" \"", "[,]x"]
        {
            let v = view(text);
            assert!(v.raw && !v.document.is_json, "{text:?}");
            assert_eq!(v.len(), text.split('\n').count());
        }
        let deep = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
        let v = view(&deep);
        assert_eq!(v.len(), usize::from(DEPTH) * 2 + 1);
    }

    #[test]
    fn fifty_megabytes_are_indexed_once_and_walked_at_once() {
        let row = r#"{"id": 12345, "title": "在庫差異 倉庫B", "tags": ["a", "b"], "body": "xxxxxxxxxxxxxxxxxxxx"},"#;
        let n = (8 << 20) / row.len();
        let mut v = view(&format!("[{}1]", row.repeat(n)));
        assert_eq!(v.len(), n * 9 + 3);
        v.step(isize::MAX / 2);
        assert_eq!(v.line(v.at).unwrap().text, "]");
        v.query = "12345".into();
        assert!(v.seek(false));
        assert_eq!(v.at, 2);
    }

    fn any_json() -> impl Strategy<Value = serde_json::Value> {
        let leaf = prop_oneof![
            Just(serde_json::Value::Null),
            any::<bool>().prop_map(Into::into),
            any::<i64>().prop_map(Into::into),
            ".{0,12}".prop_map(Into::into),
        ];
        leaf.prop_recursive(4, 40, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Into::into),
                prop::collection::vec((".{0,6}", inner), 0..6)
                    .prop_map(|m| serde_json::Value::Object(m.into_iter().collect())),
            ]
        })
    }

    proptest! {
        /// Lines put together are the text, and indented as serde does it.
        #[test]
        fn nothing_is_lost(value in any_json().prop_filter("a container", |v| v.is_object() || v.is_array())) {
            let v = view(&value.to_string());
            prop_assert!(v.document.is_json);
            let lines: Vec<String> = (0..v.len()).map(|i| v.line(i).unwrap().text.to_owned()).collect();
            prop_assert_eq!(lines.concat(), value.to_string());
            let pretty = serde_json::to_string_pretty(&value).unwrap();
            let depths: Vec<usize> =
                pretty.lines().map(|l| (l.len() - l.trim_start_matches(' ').len()) / 2).collect();
            prop_assert_eq!((0..v.len()).map(|i| v.line(i).unwrap().depth).collect::<Vec<_>>(), depths);
        }
    }
}
