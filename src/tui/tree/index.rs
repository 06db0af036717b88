//! The two indexes of a text: its lines as JSON, and as it is. One pass over the bytes each; no more lines than are of use,
//! so that the index of any text is bounded by a fraction of it.

/// Nesting that is shown as such; deeper values stay on one line.
pub(super) const DEPTH: u16 = 500;
/// Lines of more text than this are cut in raw view, in bytes.
const RAW: usize = 400;

/// Lines that each get a value of their own; after them values that stand beside each other share one.
const LINES: usize = 2_000_000;
/// How much text such a line gathers, in bytes.
const SHARED: usize = 200;

/// One line: a piece of the text at a depth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Piece {
    pub from: u32,
    pub to: u32,
    pub depth: u16,
    /// For an opening bracket: how many lines on its closing one is; else 0.
    pub span: u32,
}

/// Lines of the text as it is, long ones in pieces.
pub(super) fn raw(text: &str) -> Vec<Piece> {
    let mut out = Vec::new();
    let mut at = 0;
    for line in text.split('\n') {
        if out.len() >= LINES {
            // What is left in pieces, whatever ends its lines.
            pieces(text, at, text.len(), &mut out);
            break;
        }
        pieces(text, at, at + line.len(), &mut out);
        at += line.len() + 1;
    }
    out
}

fn pieces(text: &str, mut from: usize, end: usize, out: &mut Vec<Piece>) {
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
}

/// `None` for what is no JSON value.
pub(super) fn tree(text: &str) -> Option<Vec<Piece>> {
    let bytes = text.as_bytes();
    let first = bytes.iter().find(|b| !b.is_ascii_whitespace())?;
    if !matches!(first, b'{' | b'[') {
        return None;
    }
    let mut out: Vec<Piece> = Vec::with_capacity((bytes.len() / 32).min(LINES));
    let mut open: Vec<usize> = Vec::new();
    let mut start: Option<usize> = None;
    let mut i = 0;
    // Depth beyond what is shown: counted only.
    let mut beyond = 0u32;
    let blank =
        |from: usize| bytes[from..].iter().position(|b| !b.is_ascii_whitespace()).map(|n| from + n);
    while let Some(b) = bytes.get(i).copied() {
        let full = out.len() >= LINES;
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
                if beyond > 0 || full || open.len() >= usize::from(DEPTH) {
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
                let from = start?;
                if !full || i - from >= SHARED {
                    start = None;
                    out.push(piece(bytes, from, i, open.len()));
                }
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
