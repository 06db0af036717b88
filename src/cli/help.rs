//! Help whose examples can be copied: the parser wraps its text to the terminal, and an example that is broken in the
//! middle is another command. So it gets short marks in their place, and what it has made of them is put back.

use clap::builder::StyledStr;

/// The lines that are kept whole, by the number of their mark.
#[derive(Debug, Default)]
pub struct Whole(Vec<String>);

/// Characters that no help has in its text.
const MARK: [char; 2] = ['\u{e000}', '\u{e001}'];

impl Whole {
    /// Takes the indented lines out of what stands below the options of each command.
    pub fn take(&mut self, command: clap::Command) -> clap::Command {
        let command = match command.get_after_help().map(StyledStr::to_string) {
            Some(text) => {
                let lines: Vec<String> = text.lines().map(|l| self.mark(l)).collect();
                command.after_help(lines.join("\n"))
            }
            None => command,
        };
        command.mut_subcommands(|sub| self.take(sub))
    }

    fn mark(&mut self, line: &str) -> String {
        let text = line.trim_start();
        if text.len() == line.len() {
            return line.to_owned();
        }
        self.0.push(text.to_owned());
        let indent = &line[..line.len() - text.len()];
        format!("{indent}{}{}{}", MARK[0], self.0.len() - 1, MARK[1])
    }

    /// The text with the lines in it again.
    pub fn put_back(&self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some((before, after)) = rest.split_once(MARK[0]) {
            out.push_str(before);
            let (number, after) = after.split_once(MARK[1]).unwrap_or((after, ""));
            let line = number.parse().ok().and_then(|n: usize| self.0.get(n));
            out.push_str(line.map_or("", String::as_str));
            rest = after;
        }
        out.push_str(rest);
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_is_wider_than_the_terminal_stays_one() {
        let long = format!("redial call {} -- redial serve tickets", "x".repeat(90));
        let sub = clap::Command::new("call").after_help(format!("Words.\n\nExample:\n  {long}"));
        let mut whole = Whole::default();
        let mut command = whole.take(clap::Command::new("redial").subcommand(sub)).term_width(30);
        let e = command.try_get_matches_from_mut(["redial", "call", "--help"]).unwrap_err();
        let text = whole.put_back(&e.to_string());
        assert!(text.lines().any(|l| l == format!("  {long}")), "{text}");
        assert!(!text.contains(MARK));
    }
}
