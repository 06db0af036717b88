//! Colours are roles: widgets ask for `warn` or `selection`, a theme file says what that looks like. The
//! only place where a colour is named; meaning never rests on one alone.

use crate::error::{Error, Result};
use crate::judge::{State, Verdict};
use ratatui::style::{Color, Modifier, Style};
use serde::Deserialize;

/// The built-in themes: name and file.
pub const BUILT_IN: [(&str, &str); 3] = [
    ("dark", include_str!("../../themes/dark.toml")),
    ("light", include_str!("../../themes/light.toml")),
    ("mono", include_str!("../../themes/mono.toml")),
];

/// A style for every role.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Theme {
    pub text: Look,
    /// Secondary: times, labels, finished things.
    pub dim: Look,
    pub strong: Look,
    /// A pane's title; and that of the pane that has the keys.
    pub title: Look,
    pub title_focus: Look,
    pub rule: Look,
    pub ok: Look,
    pub info: Look,
    pub warn: Look,
    pub error: Look,
    /// A key's name in the footer and in help.
    pub key: Look,
    /// The selected row, in the pane that has the keys and elsewhere.
    pub selection: Look,
    pub selection_idle: Look,
    /// The permanent marks.
    pub demo: Look,
    pub read_only: Look,
    /// What can be typed into, and its cursor.
    pub input: Look,
    pub cursor: Look,
}

/// How a role looks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Look {
    #[serde(deserialize_with = "color")]
    pub fg: Option<Color>,
    #[serde(deserialize_with = "color")]
    pub bg: Option<Color>,
    pub bold: bool,
    pub dim: bool,
    pub italic: bool,
    pub underlined: bool,
    pub reversed: bool,
}

/// `red`, `light blue`, `#ff8800`, or an index of the 256.
fn color<'de, D: serde::Deserializer<'de>>(d: D) -> Result<Option<Color>, D::Error> {
    let name = String::deserialize(d)?;
    let unknown = |_| serde::de::Error::custom(format!("{name:?} is no colour"));
    name.parse().map(Some).map_err(unknown)
}

impl From<Look> for Style {
    fn from(look: Look) -> Style {
        let mut style = Style { fg: look.fg, bg: look.bg, ..Style::default() };
        for (on, modifier) in [
            (look.bold, Modifier::BOLD),
            (look.dim, Modifier::DIM),
            (look.italic, Modifier::ITALIC),
            (look.underlined, Modifier::UNDERLINED),
            (look.reversed, Modifier::REVERSED),
        ] {
            if on {
                style = style.add_modifier(modifier);
            }
        }
        style
    }
}

impl Look {
    /// As ratatui's style.
    pub fn style(self) -> Style {
        self.into()
    }
}

impl Theme {
    /// A built-in theme by its name; exit 2 with the names there are.
    pub fn named(name: &str) -> Result<Theme> {
        match BUILT_IN.iter().find(|(n, _)| *n == name) {
            Some((_, file)) => Theme::parse(name, file),
            None => {
                let names: Vec<&str> = BUILT_IN.iter().map(|(n, _)| *n).collect();
                let what = format!("there is no theme {name:?}");
                Err(Error::usage(what).hint(format!("themes: {}", names.join(", "))))
            }
        }
    }

    /// Reads a theme file; exit 2 says what is wrong with it. Every role has to be there.
    pub fn parse(name: &str, file: &str) -> Result<Theme> {
        toml::from_str(file).map_err(|e| Error::usage(format!("theme {name}: {}", e.message())))
    }

    /// What suits this terminal when nothing is configured: `mono` when `NO_COLOR` is set to anything
    /// (no-color.org) or the terminal has no colours, else `dark`.
    pub fn for_terminal() -> Result<Theme> {
        let no_color = std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty());
        let profile = termprofile::TermProfile::detect(
            &std::io::stdout(),
            termprofile::DetectorSettings::default(),
        );
        let mono = no_color || profile < termprofile::TermProfile::Ansi16;
        Theme::named(if mono { "mono" } else { "dark" })
    }

    /// For a state's glyph and word.
    pub fn state(&self, state: &State) -> Style {
        match state {
            State::Done => self.ok,
            State::Running | State::Waiting => self.info,
            State::Abandoned | State::Expired | State::Unmapped(_) => self.warn,
            State::Failed => self.error,
            State::Cancelled | State::NoRow => self.dim,
        }
        .style()
    }

    /// For a verdict, by how bad it is.
    pub fn verdict(&self, verdict: &Verdict) -> Style {
        use Verdict as V;
        match verdict {
            V::Duplicate
            | V::EndpointMismatch
            | V::Conflict
            | V::DoneWithoutEffect
            | V::EffectWithoutRequest
            | V::AnsweredWithoutRow
            | V::Failed => self.error,
            V::SuspectDuplicate
            | V::RequestPurged
            | V::AbandonedWithEffect
            | V::Abandoned
            | V::Stalled
            | V::Released
            | V::Rejected
            | V::NoClaim
            | V::NeverArrived
            | V::OutcomeUnknown
            | V::Expired
            | V::Unmapped => self.warn,
            V::InFlight | V::Working | V::Waiting => self.info,
            V::Finished | V::Cancelled | V::NotKnown => self.dim,
        }
        .style()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_theme_is_whole_and_shows_what_is_selected() {
        for (name, _) in BUILT_IN {
            let theme = Theme::named(name).unwrap();
            assert_ne!(theme.selection, theme.text, "{name}");
            assert_ne!(theme.selection, theme.selection_idle, "{name}");
        }
    }

    #[test]
    fn mono_has_no_colour() {
        let file = Theme::named("mono").unwrap();
        let shown = format!("{file:?}");
        assert!(!shown.contains("Some("), "{shown}");
    }

    #[test]
    fn a_bad_file_is_told_by_what_is_wrong() {
        let whole = BUILT_IN[0].1;
        for (bad, says) in [
            (format!("{whole}\nsparkle = {{}}"), "sparkle"),
            (whole.replace("\"cyan\"", "\"cian\""), "cian"),
            (whole.replace("warn =", "# warn ="), "warn"),
        ] {
            let e = Theme::parse("mine", &bad).unwrap_err();
            assert!(e.what.contains(says), "{}", e.what);
        }
        assert!(Theme::named("drak").unwrap_err().to_string().contains("dark, light, mono"));
    }
}
