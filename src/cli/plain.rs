//! Plain output for people: aligned, coloured only on a terminal, every foreign text through the one door.
//!
//! The only place besides `json` that writes to stdout; `anstream` strips colour where there is no terminal
//! or `NO_COLOR` is set. Values are wrapped under themselves to a terminal's width, and left alone in a pipe.

use crate::text::{self, visible};
use anstyle::{AnsiColor, Style};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};

/// Where the values of fields begin.
const COLUMN: usize = 14;
/// Less than this is no width to wrap to.
const NARROW: usize = 40;

/// The last column of a table has at least so much room where it needs it.
const LAST: usize = 18;

/// No column is wider: one id of a megabyte must not push all others out of sight.
const CELL: usize = 100;

/// What a piece of text means; never the only sign of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Role {
    /// Plain.
    #[default]
    Text,
    /// Less important.
    Dim,
    /// A title.
    Strong,
    /// Finished, safe.
    Good,
    /// Needs a look.
    Warn,
    /// Broken, or must not be repeated.
    Bad,
}

impl Role {
    fn style(self) -> Style {
        match self {
            Role::Text => Style::new(),
            Role::Dim => Style::new().dimmed(),
            Role::Strong => Style::new().bold(),
            Role::Good => AnsiColor::Green.on_default(),
            Role::Warn => AnsiColor::Yellow.on_default(),
            Role::Bad => AnsiColor::Red.on_default().bold(),
        }
    }
}

/// A cell of a table.
pub type Cell = (Role, String);

/// Lines gathered for stdout or stderr.
#[derive(Debug, Default)]
pub struct Plain {
    out: String,
    /// The terminal's width; `None`: nothing is wrapped.
    width: Option<usize>,
}

impl Plain {
    /// For stdout, as wide as its terminal.
    pub fn stdout() -> Plain {
        Plain { out: String::new(), width: terminal_width(io::stdout()) }
    }

    /// For stderr, as wide as its terminal.
    pub fn stderr() -> Plain {
        Plain { out: String::new(), width: terminal_width(io::stderr()) }
    }

    /// A sentence of one role; `text` is cleaned.
    pub fn line(&mut self, role: Role, text: &str) {
        self.wrapped(0, role, text);
    }

    /// One line of several parts, each cleaned; never wrapped: what is to be pasted stays whole.
    pub fn parts(&mut self, parts: &[(Role, &str)]) {
        for (role, text) in parts {
            self.styled(*role, &visible(text));
        }
        self.out.push('\n');
    }

    /// An empty line.
    pub fn gap(&mut self) {
        self.out.push('\n');
    }

    /// `name  value`, names in a column; a value of several lines goes on under itself.
    pub fn field(&mut self, name: &str, role: Role, value: &str) {
        let name = text::truncate(text::head(name, CELL), CELL, "…");
        let name = visible(&name);
        if text::width(&name) < COLUMN {
            self.styled(Role::Dim, &text::pad(&name, COLUMN));
        } else {
            self.styled(Role::Dim, &name);
            self.out.push('\n');
            self.out.push_str(&" ".repeat(COLUMN));
        }
        let mut first = true;
        for line in value.lines() {
            if !first {
                self.out.push_str(&" ".repeat(COLUMN));
            }
            self.wrapped(COLUMN, role, line);
            first = false;
        }
        if first {
            self.out.push('\n');
        }
    }

    /// A table with aligned columns; the last column is not filled. On a narrow terminal column `shrinks` gives
    /// way first (its end is cut), and the last one goes on under itself.
    pub fn table(&mut self, rows: &[Vec<Cell>], shrinks: usize) {
        let clean: Vec<Vec<(Role, String)>> =
            rows.iter().map(|r| r.iter().map(|(role, t)| (*role, cell(t))).collect()).collect();
        let columns = clean.iter().map(Vec::len).max().unwrap_or(0);
        let widest = |i: usize| {
            clean
                .iter()
                .filter_map(|r| r.get(i))
                .map(|c| text::width(&c.1))
                .max()
                .unwrap_or(0)
                .min(CELL)
        };
        let mut widths: Vec<usize> = (0..columns).map(widest).collect();
        // The last column may be narrower than its text.
        let last = widths.last().map_or(0, |w| w.saturating_sub(LAST));
        let whole = widths.iter().sum::<usize>() - last + 2 * columns.saturating_sub(1);
        let over = self.width.map_or(0, |w| whole.saturating_sub(w));
        if let Some(w) = widths.get_mut(shrinks).filter(|w| **w > 8) {
            *w = w.saturating_sub(over).max(8);
        }
        for row in &clean {
            let last = row.len().saturating_sub(1);
            let mut column = 0;
            for (i, (role, t)) in row.iter().enumerate() {
                if i == last {
                    self.wrapped(column, *role, t);
                    continue;
                }
                let t = text::truncate(t, widths[i], "…");
                self.styled(*role, &t);
                let fill = widths[i].saturating_sub(text::width(&t)) + 2;
                self.out.push_str(&" ".repeat(fill));
                column += widths[i] + 2;
            }
        }
    }

    /// The server's last words, when something went wrong.
    pub fn tail(&mut self, title: &str, lines: &[String]) {
        if lines.is_empty() {
            return;
        }
        self.line(Role::Dim, title);
        for l in lines {
            self.parts(&[(Role::Dim, "  │ "), (Role::Text, l)]);
        }
    }

    /// Writes everything to stdout. A closed pipe (`| head`) is no error; anything else is said on stderr.
    ///
    /// Says whether anybody still reads.
    pub fn print(self) -> bool {
        said(anstream::stdout().lock().write_all(self.out.as_bytes()))
    }

    /// Writes everything to stderr. Without stderr there is nobody left to tell.
    pub fn complain(self) {
        anstream::stderr().lock().write_all(self.out.as_bytes()).ok();
    }

    /// What would be printed, colours included.
    pub fn text(&self) -> &str {
        &self.out
    }

    fn styled(&mut self, role: Role, clean: &str) {
        let style = role.style();
        self.out.push_str(&format!("{style}{clean}{style:#}"));
    }

    /// `text` from column `at` on, wrapped under itself; ends the line.
    fn wrapped(&mut self, at: usize, role: Role, text: &str) {
        let clean = visible(text);
        let room = self.width.map(|w| w.saturating_sub(at)).filter(|room| *room >= LAST);
        let lines = match room {
            Some(room) => wrap(&clean, room),
            None => vec![&*clean],
        };
        for (i, line) in lines.into_iter().enumerate() {
            if i > 0 {
                self.out.push_str(&" ".repeat(at));
            }
            self.styled(role, line);
            self.out.push('\n');
        }
    }
}

/// A cell's text as it is shown; of a very long one the beginning.
fn cell(t: &str) -> String {
    const MOST: usize = 4_000;
    text::truncate(&visible(text::head(t, MOST)), MOST, "…").into_owned()
}

/// Breaks at spaces only: a long id, hash or command stays in one piece to be copied.
fn wrap(text: &str, room: usize) -> Vec<&str> {
    let mut lines = Vec::new();
    let (mut from, mut end, mut used) = (0, 0, 0);
    for word in text.split_inclusive(' ') {
        let w = text::width(word.trim_end());
        if used > 0 && used + w > room {
            lines.push(text[from..end].trim_end());
            (from, used) = (end, 0);
        }
        end += word.len();
        used += text::width(word);
    }
    lines.push(&text[from..]);
    lines
}

fn terminal_width(out: impl AsFd) -> Option<usize> {
    // Fails where there is no terminal.
    let size = rustix::termios::tcgetwinsize(out).ok()?;
    // A terminal that says 0x0 says nothing.
    let assumed = || crate::tui::term::assumed_size().0;
    let columns = if size.ws_col == 0 { assumed() } else { size.ws_col };
    Some(usize::from(columns)).filter(|w| *w >= NARROW)
}

/// Writes raw text (JSON documents) to stdout, as [`Plain::print`] does.
///
/// Says whether anybody still reads.
pub fn print_raw(text: &str) -> bool {
    said(io::stdout().lock().write_all(text.as_bytes()))
}

/// [`print_raw`] for text in pieces that may end in the middle of a character.
pub fn print_bytes(bytes: &[u8]) -> bool {
    said(io::stdout().lock().write_all(bytes))
}

/// Part of a report could not be written, though somebody may be waiting for it.
static LOST: AtomicBool = AtomicBool::new(false);

/// Whether all reports were written, or nobody wanted to read them; what is still buffered is written first.
pub fn all_written() -> bool {
    said(io::stdout().lock().flush());
    !LOST.load(Ordering::Relaxed)
}

/// The terminal has gone, and whoever read there with it. (Of such a terminal nobody can say any more that it is one.)
fn is_gone_terminal(e: &io::Error) -> bool {
    let device = || {
        let mode = rustix::fs::fstat(io::stdout()).map(|s| s.st_mode);
        mode.is_ok_and(|m| rustix::fs::FileType::from_raw_mode(m).is_char_device())
    };
    e.raw_os_error() == Some(rustix::io::Errno::IO.raw_os_error()) && device()
}

fn said(written: io::Result<()>) -> bool {
    if let Err(e) = &written
        && e.kind() != io::ErrorKind::BrokenPipe
        && !is_gone_terminal(e)
        && !LOST.swap(true, Ordering::Relaxed)
    {
        complain(&format!("the report could not be written to stdout: {e}"));
    }
    written.is_ok()
}

/// Says something on stderr with the program's name before it, cleaned; further lines are hints.
pub fn complain(text: &str) {
    let mut p = Plain::stderr();
    for (i, line) in text.lines().enumerate() {
        if i == 0 {
            p.line(Role::Text, &format!("redial: {line}"));
        } else {
            p.out.push_str("  ");
            p.wrapped(2, Role::Text, line.trim_start());
        }
    }
    p.complain();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stripped(p: &Plain) -> String {
        anstream::adapter::strip_str(p.text()).to_string()
    }

    fn wide(width: usize) -> Plain {
        Plain { out: String::new(), width: Some(width) }
    }

    #[test]
    fn columns_line_up_with_japanese_and_hostile_text() {
        let mut p = Plain::default();
        p.table(
            &[
                vec![(Role::Text, "障害報告".into()), (Role::Text, "x".into())],
                vec![(Role::Text, "ab\u{1b}[2J".into()), (Role::Text, "y".into())],
            ],
            0,
        );
        let plain = stripped(&p);
        let lines: Vec<&str> = plain.lines().collect();
        let at = |l: &str, c: char| text::width(&l[..l.find(c).unwrap()]);
        assert_eq!(at(lines[0], 'x'), at(lines[1], 'y'));
        assert!(!p.text().contains("\u{1b}[2J"));
    }

    #[test]
    fn values_go_on_under_themselves_on_a_terminal_and_stay_whole_in_a_pipe() {
        let value = "one two three four five six seven eight nine ten eleven\nsecond line";
        let mut p = wide(44);
        p.field("why", Role::Text, value);
        assert_eq!(
            stripped(&p),
            "why           one two three four five six\n              seven eight nine ten eleven\n              second line\n"
        );
        let mut p = Plain::default();
        p.field("why", Role::Text, value);
        assert_eq!(stripped(&p).lines().count(), 2);
    }

    #[test]
    fn a_long_word_is_never_broken_and_a_long_name_gets_its_own_line() {
        let id = "x".repeat(60);
        let mut p = wide(50);
        p.field("why", Role::Text, &format!("see {id} there"));
        assert!(stripped(&p).contains(&id));
        let mut p = wide(50);
        p.field("a-very-long-request-id", Role::Text, "wait");
        assert_eq!(stripped(&p), "a-very-long-request-id\n              wait\n");
        let mut p = wide(50);
        p.field("empty", Role::Text, "");
        assert_eq!(stripped(&p).trim_end(), "empty");
    }

    #[test]
    fn a_table_fits_by_cutting_the_column_that_may_be_cut() {
        let about = "a long story about a ticket and more of it".to_owned();
        let row = vec![
            (Role::Text, "night-001".into()),
            (Role::Text, about),
            (Role::Text, "suspect duplicate, finished".into()),
        ];
        let mut p = wide(60);
        p.table(std::slice::from_ref(&row), 1);
        let text = stripped(&p);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines.iter().all(|l| text::width(l.trim_end()) <= 60), "{text}");
        assert!(lines[0].contains("night-001") && lines[0].contains('…'), "{text}");
        assert!(
            lines[0].ends_with("suspect duplicate,") && lines[1].ends_with("  finished"),
            "{text}"
        );
    }
}
