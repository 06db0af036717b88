//! A JSON text as lines that can be folded, searched and looked at raw. One pass over the bytes makes a flat index of
//! lines (two numbers and a depth each); nothing is parsed into values, so numbers, order and escapes stay as they
//! came, and 50 MB are a matter of a moment. Text that is no JSON is shown as its lines.
//!
//! Pure. Drawing asks for the few lines it shows.

mod index;

use index::{Piece, raw, tree};
use std::collections::HashSet;
use std::sync::Arc;

/// Longest piece of one line that is handed to drawing, in bytes.
const PIECE: usize = 4_096;
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
mod tests;
