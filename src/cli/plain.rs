//! Plain output for people: aligned, coloured only on a terminal, every foreign text through the one door.
//!
//! The only place besides `json` that writes to stdout; `anstream` strips colour where there is no terminal
//! or `NO_COLOR` is set.

use crate::text::{self, visible};
use anstyle::{AnsiColor, Style};
use std::io::{self, Write};

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

/// Lines gathered for stdout.
#[derive(Debug, Default)]
pub struct Plain {
    out: String,
}

impl Plain {
    /// One line of one role; `text` is cleaned.
    pub fn line(&mut self, role: Role, text: &str) {
        self.parts(&[(role, text)]);
    }

    /// One line of several parts, each cleaned.
    pub fn parts(&mut self, parts: &[(Role, &str)]) {
        for (role, text) in parts {
            let style = role.style();
            self.out.push_str(&format!("{style}{}{style:#}", visible(text)));
        }
        self.out.push('\n');
    }

    /// An empty line.
    pub fn gap(&mut self) {
        self.out.push('\n');
    }

    /// `name  value`, names in a column; a value of several lines goes on under itself.
    pub fn field(&mut self, name: &str, role: Role, value: &str) {
        let mut lines = value.lines();
        let first = lines.next().unwrap_or("");
        self.parts(&[(Role::Dim, &text::pad(name, 14)), (role, first)]);
        for more in lines {
            self.parts(&[(Role::Dim, &text::pad("", 14)), (role, more)]);
        }
    }

    /// A table with aligned columns; the last column is not filled.
    pub fn table(&mut self, rows: &[Vec<Cell>]) {
        let clean: Vec<Vec<(Role, String)>> = rows
            .iter()
            .map(|r| r.iter().map(|(role, t)| (*role, visible(t).into_owned())).collect())
            .collect();
        let columns = clean.iter().map(Vec::len).max().unwrap_or(0);
        let widths: Vec<usize> = (0..columns)
            .map(|i| {
                clean.iter().filter_map(|r| r.get(i)).map(|c| text::width(&c.1)).max().unwrap_or(0)
            })
            .collect();
        for row in &clean {
            let last = row.len().saturating_sub(1);
            for (i, (role, t)) in row.iter().enumerate() {
                let style = role.style();
                let fill = if i == last { 0 } else { widths[i].saturating_sub(text::width(t)) + 2 };
                self.out.push_str(&format!("{style}{t}{style:#}{}", " ".repeat(fill)));
            }
            self.out.push('\n');
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

    /// Writes everything to stdout. A closed pipe (`| head`) is no error.
    ///
    /// # Errors
    /// The system's.
    pub fn print(self) -> io::Result<()> {
        quiet_pipe(anstream::stdout().lock().write_all(self.out.as_bytes()))
    }

    /// What would be printed, colours included.
    pub fn text(&self) -> &str {
        &self.out
    }
}

/// Writes raw text (JSON documents) to stdout.
///
/// # Errors
/// The system's, but for a closed pipe.
pub fn print_raw(text: &str) -> io::Result<()> {
    quiet_pipe(io::stdout().lock().write_all(text.as_bytes()))
}

/// Writes one line to stderr, cleaned.
pub fn complain(text: &str) {
    let mut err = anstream::stderr().lock();
    for (i, line) in text.lines().enumerate() {
        let prefix = if i == 0 { "redial: " } else { "" };
        // There is nobody left to tell when stderr is gone.
        writeln!(err, "{prefix}{}", visible(line)).ok();
    }
}

/// Writes one line to stderr without the program's name, cleaned.
pub fn complain_more(text: &str) {
    writeln!(anstream::stderr().lock(), "{}", visible(text)).ok();
}

fn quiet_pipe(r: io::Result<()>) -> io::Result<()> {
    match r {
        Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        r => r,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_with_japanese_and_hostile_text() {
        let mut p = Plain::default();
        p.table(&[
            vec![(Role::Text, "障害報告".into()), (Role::Text, "x".into())],
            vec![(Role::Text, "ab\u{1b}[2J".into()), (Role::Text, "y".into())],
        ]);
        let plain = anstream::adapter::strip_str(p.text()).to_string();
        let lines: Vec<&str> = plain.lines().collect();
        let at = |l: &str, c: char| text::width(&l[..l.find(c).unwrap()]);
        assert_eq!(at(lines[0], 'x'), at(lines[1], 'y'));
        assert!(!p.text().contains("\u{1b}[2J"));
    }
}
