//! Colours are roles: widgets ask for `warn` or `selection`, a theme file says what that looks like. The
//! only place where a colour is named; meaning never rests on one alone.

use crate::error::{Error, Result};
use crate::judge::{State, Verdict};
use ratatui::style::{Color, Modifier, Style};
use serde::Deserialize;
use std::path::Path;

/// The built-in themes: name and file, in the order of the picker.
pub const BUILT_IN: [(&str, &str); 6] = [
    ("dark", include_str!("../../themes/dark.toml")),
    ("light", include_str!("../../themes/light.toml")),
    ("high-contrast", include_str!("../../themes/high-contrast.toml")),
    ("mono", include_str!("../../themes/mono.toml")),
    ("gruvbox", include_str!("../../themes/gruvbox.toml")),
    ("catppuccin", include_str!("../../themes/catppuccin.toml")),
];

/// How many themes may inherit from each other in a row.
const DEPTH: usize = 8;
/// The longest theme file of a user that is read, in bytes.
const LONGEST: u64 = 64 << 10;

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
    /// The mark of a row that has just changed.
    pub changed: Look,
    /// What a search found.
    pub found: Look,
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
    /// A built-in theme by its name.
    ///
    /// # Errors
    /// Exit 2 with the names there are.
    pub fn named(name: &str) -> Result<Theme> {
        Themes::built_in()?.find(name).cloned()
    }

    /// Reads a theme file. It names every role, or `inherits` those of another theme; `[palette]` gives colours names.
    ///
    /// # Errors
    /// Exit 2 says what is wrong with it.
    pub fn parse(name: &str, file: &str) -> Result<Theme> {
        let built_in =
            |n: &str| BUILT_IN.iter().find(|(b, _)| *b == n).map(|(_, f)| (*f).to_owned());
        resolve(name, file, &built_in, DEPTH).and_then(|t| whole(name, t))
    }

    /// The theme as this terminal can show it: colours it doesn't have become the nearest it has.
    #[must_use]
    pub fn adapted(mut self, profile: termprofile::TermProfile) -> Theme {
        for look in self.looks_mut() {
            look.fg = look.fg.and_then(|c| profile.adapt_color(c));
            look.bg = look.bg.and_then(|c| profile.adapt_color(c));
        }
        self
    }

    fn looks_mut(&mut self) -> [&mut Look; 19] {
        [
            &mut self.text,
            &mut self.dim,
            &mut self.strong,
            &mut self.title,
            &mut self.title_focus,
            &mut self.rule,
            &mut self.ok,
            &mut self.info,
            &mut self.warn,
            &mut self.error,
            &mut self.key,
            &mut self.selection,
            &mut self.selection_idle,
            &mut self.changed,
            &mut self.found,
            &mut self.demo,
            &mut self.read_only,
            &mut self.input,
            &mut self.cursor,
        ]
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
            | V::SeveralRows
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

/// A theme file as a table with everything inherited in place and palette names resolved.
fn resolve(
    name: &str,
    file: &str,
    other: &dyn Fn(&str) -> Option<String>,
    depth: usize,
) -> Result<toml::Table> {
    let wrong = |what: String| Error::usage(format!("theme {name}: {what}"));
    let mut own: toml::Table =
        file.parse().map_err(|e: toml::de::Error| wrong(e.message().to_owned()))?;
    let palette = match own.remove("palette") {
        Some(toml::Value::Table(t)) => t,
        Some(_) => return Err(wrong("palette is no table of colours".into())),
        None => toml::Table::new(),
    };
    for look in own.iter_mut().filter_map(|(_, v)| v.as_table_mut()) {
        for part in ["fg", "bg"] {
            let named = look.get(part).and_then(toml::Value::as_str).and_then(|n| palette.get(n));
            if let Some(color) = named.cloned() {
                look.insert(part.into(), color);
            }
        }
    }
    let Some(parent) = own.remove("inherits") else { return Ok(own) };
    let parent = parent.as_str().ok_or_else(|| wrong("inherits is no name".into()))?.to_owned();
    if depth == 0 {
        return Err(wrong("it inherits from itself".into()));
    }
    // A user's `dark` that inherits from `dark` means the built-in one.
    let built_in = |n: &str| BUILT_IN.iter().find(|(b, _)| *b == n).map(|(_, f)| (*f).to_owned());
    let file = if parent == name { built_in(&parent) } else { other(&parent) };
    let file =
        file.ok_or_else(|| wrong(format!("it inherits from {parent:?}, which isn't there")))?;
    let mut whole = if parent == name {
        resolve(&parent, &file, &built_in, depth - 1)?
    } else {
        resolve(&parent, &file, other, depth - 1)?
    };
    whole.extend(own);
    Ok(whole)
}

fn whole(name: &str, table: toml::Table) -> Result<Theme> {
    Theme::deserialize(table).map_err(|e| Error::usage(format!("theme {name}: {}", e.message())))
}

/// All themes at hand, by name, and the chosen one.
#[derive(Debug, Clone)]
pub struct Themes {
    list: Vec<Named>,
    at: usize,
}

#[derive(Debug, Clone)]
struct Named {
    name: String,
    /// Where the user's file can't be used: the built-in one of its name, else `dark`.
    theme: Theme,
    /// Why it can't be used.
    broken: Option<String>,
}

impl Named {
    fn good(name: &str, theme: Theme) -> Named {
        Named { name: name.to_owned(), theme, broken: None }
    }
}

impl Default for Themes {
    /// A single theme without any colour, for a screen that nobody gave one.
    fn default() -> Themes {
        Themes { list: vec![Named::good("none", Theme::default())], at: 0 }
    }
}

impl Themes {
    /// The built-in ones; the first is chosen.
    ///
    /// # Errors
    /// None in a build whose tests pass.
    pub fn built_in() -> Result<Themes> {
        let list = BUILT_IN.iter().map(|(n, f)| Ok(Named::good(n, Theme::parse(n, f)?)));
        Ok(Themes { list: list.collect::<Result<_>>()?, at: 0 })
    }

    /// The built-in ones, and those of a folder: a file there stands in for a built-in theme of its name. A folder that
    /// isn't there holds none. A file that is no theme breaks no other: it is kept with what is wrong with it.
    ///
    /// # Errors
    /// See [`Themes::built_in`].
    pub fn with_folder(folder: &Path) -> Result<Themes> {
        let mut themes = Themes::built_in()?;
        let mut files: Vec<(String, Option<String>)> = Vec::new();
        let entries = std::fs::read_dir(folder).into_iter().flatten().filter_map(|e| e.ok());
        for path in entries.map(|e| e.path()).filter(|p| p.extension().is_some_and(|e| e == "toml"))
        {
            let Some(name) = path.file_stem().and_then(|n| n.to_str()).map(str::to_owned) else {
                continue;
            };
            let bytes = crate::files::whole(&path, LONGEST).ok();
            files.push((name, bytes.and_then(|b| String::from_utf8(b).ok())));
        }
        files.sort_unstable();
        let other = |n: &str| {
            let own = files.iter().find(|(name, _)| name == n).map(|(_, f)| f.clone());
            own.unwrap_or_else(|| {
                BUILT_IN.iter().find(|(b, _)| *b == n).map(|(_, f)| (*f).to_owned())
            })
        };
        for (name, file) in &files {
            let theme = match file {
                Some(file) => resolve(name, file, &other, DEPTH).and_then(|t| whole(name, t)),
                None => Err(Error::usage(format!("theme {name}: its file can't be read"))),
            };
            let stand_in = themes.list[0].theme.clone();
            let known = themes.list.iter().position(|t| t.name == *name);
            let at = known.unwrap_or(themes.list.len());
            if known.is_none() {
                themes.list.push(Named::good(name, stand_in));
            }
            match theme {
                Ok(theme) => themes.list[at].theme = theme,
                Err(e) => themes.list[at].broken = Some(e.what),
            }
        }
        Ok(themes)
    }

    /// A theme by its name.
    ///
    /// # Errors
    /// Exit 2 with the nearest name, and all there are.
    pub fn find(&self, name: &str) -> Result<&Theme> {
        let named = self.list.iter().find(|t| t.name == name);
        if let Some(why) = named.and_then(|t| t.broken.as_ref()) {
            return Err(Error::usage(why.clone()));
        }
        named.map(|t| &t.theme).ok_or_else(|| {
            let nearest = crate::near::nearest(name, self.names());
            let what = match nearest {
                Some(n) => format!("there is no theme {name:?}; did you mean {n}?"),
                None => format!("there is no theme {name:?}"),
            };
            let names: Vec<&str> = self.names().collect();
            Error::usage(what).hint(format!("themes: {}", names.join(", ")))
        })
    }

    /// Chooses one.
    ///
    /// # Errors
    /// See [`Themes::find`].
    pub fn choose(&mut self, name: &str) -> Result<()> {
        self.find(name)?;
        self.at = self.list.iter().position(|t| t.name == name).unwrap_or(0);
        Ok(())
    }

    /// Chooses what nobody asked for by name: where the user's own file of that name can't be used, the built-in one.
    ///
    /// # Errors
    /// See [`Themes::find`].
    pub fn choose_default(&mut self, name: &str) -> Result<()> {
        match self.list.iter().position(|t| t.name == name) {
            Some(at) => self.at = at,
            None => self.choose(name)?,
        }
        Ok(())
    }

    /// Why the one at this place can't be used, if it can't.
    pub fn broken(&self, at: usize) -> Option<&str> {
        self.list.get(at)?.broken.as_deref()
    }

    /// Chooses by place.
    pub fn choose_at(&mut self, at: usize) {
        self.at = at.min(self.list.len() - 1);
    }

    /// The chosen one's place and name.
    pub fn chosen(&self) -> (usize, &str) {
        (self.at, &self.list[self.at].name)
    }

    /// The chosen one.
    pub fn theme(&self) -> &Theme {
        &self.list[self.at].theme
    }

    /// All names, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.list.iter().map(|t| t.name.as_str())
    }

    /// All of them as this terminal can show them. `mono` is chosen when `NO_COLOR` is set to anything (no-color.org)
    /// or the terminal has no colours, unless a theme was asked for by name on the command line.
    #[must_use]
    pub fn for_terminal(mut self, asked: bool) -> Themes {
        let profile = termprofile::TermProfile::detect(
            &std::io::stdout(),
            termprofile::DetectorSettings::default(),
        );
        let no_color = std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty());
        let colours = profile >= termprofile::TermProfile::Ansi16;
        if colours && !no_color {
            for named in &mut self.list {
                named.theme = std::mem::take(&mut named.theme).adapted(profile);
            }
        }
        if (no_color || !colours) && !asked {
            self.at = self.list.iter().position(|t| t.name == "mono").unwrap_or(self.at);
        }
        self
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
            assert_ne!(theme.found, theme.text, "{name}");
        }
    }

    #[test]
    fn mono_has_no_colour() {
        let file = Theme::named("mono").unwrap();
        let shown = format!("{file:?}");
        assert!(!shown.contains("Some("), "{shown}");
    }

    #[test]
    fn dark_and_light_leave_colours_to_the_users_palette() {
        for name in ["dark", "light"] {
            let shown = format!("{:?}", Theme::named(name).unwrap());
            assert!(!shown.contains("Rgb") && !shown.contains("Indexed"), "{name}: {shown}");
        }
    }

    /// Relative luminance, WCAG 2.2 "relative luminance".
    fn luminance(c: Color) -> f64 {
        let Color::Rgb(r, g, b) = c else { panic!("{c:?} is not fixed") };
        let part = |v: u8| {
            let v = f64::from(v) / 255.0;
            if v <= 0.04045 { v / 12.92 } else { ((v + 0.055) / 1.055).powf(2.4) }
        };
        0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b)
    }

    fn contrast(a: Color, b: Color) -> f64 {
        let (a, b) = (luminance(a), luminance(b));
        (a.max(b) + 0.05) / (a.min(b) + 0.05)
    }

    #[test]
    fn themes_with_fixed_colours_can_be_read() {
        assert!((contrast(Color::Rgb(0, 0, 0), Color::Rgb(255, 255, 255)) - 21.0).abs() < 1e-9);
        let mut fixed = 0;
        for (name, _) in BUILT_IN {
            let mut theme = Theme::named(name).unwrap();
            let (Some(fg), Some(bg)) = (theme.text.fg, theme.text.bg) else { continue };
            fixed += 1;
            // WCAG 1.4.3: 4.5 to 1; high contrast keeps 1.4.6: 7 to 1.
            let least = if name == "high-contrast" { 7.0 } else { 4.5 };
            for (i, look) in theme.looks_mut().into_iter().enumerate() {
                assert!(
                    !look.dim,
                    "{name}: role {i} is dimmed by the terminal, nobody knows how far"
                );
                let got = contrast(look.fg.unwrap_or(fg), look.bg.unwrap_or(bg));
                assert!(got >= least, "{name}: role {i} has {got:.2}");
            }
        }
        assert_eq!(fixed, 3);
    }

    #[test]
    fn a_bad_file_is_told_by_what_is_wrong() {
        let whole = BUILT_IN[0].1;
        for (bad, says) in [
            (format!("{whole}\nsparkle = {{}}"), "sparkle"),
            (whole.replace("\"cyan\"", "\"cian\""), "cian"),
            (whole.replace("warn =", "# warn ="), "warn"),
            ("inherits = \"nobody\"".into(), "nobody"),
            ("palette = 3".into(), "palette"),
            ("text = ".into(), "theme mine"),
        ] {
            let e = Theme::parse("mine", &bad).unwrap_err();
            assert!(e.what.contains(says), "{}", e.what);
        }
        let e = Theme::named("drak").unwrap_err().to_string();
        assert!(
            e.contains("did you mean dark?") && e.contains("dark, light, high-contrast"),
            "{e}"
        );
    }

    #[test]
    fn a_users_files_stand_beside_and_over_the_built_in_ones() {
        let folder = tempfile::tempdir().unwrap();
        let write =
            |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        write("dark.toml", "inherits = \"dark\"\nok = { fg = \"blue\" }");
        write(
            "mine.toml",
            "inherits = \"dark\"\nwarn = { fg = \"sun\" }\n[palette]\nsun = \"#ffcc00\"",
        );
        write("notes.txt", "no theme");
        let themes = Themes::with_folder(folder.path()).unwrap();
        assert_eq!(themes.names().count(), BUILT_IN.len() + 1);
        assert_eq!(themes.find("dark").unwrap().ok.fg, Some(Color::Blue));
        let mine = themes.find("mine").unwrap();
        assert_eq!((mine.ok.fg, mine.warn.fg), (Some(Color::Blue), Some(Color::Rgb(255, 204, 0))));
        assert_eq!(Themes::with_folder(&folder.path().join("nowhere")).unwrap().names().count(), 6);
        write("a.toml", "inherits = \"b\"");
        write("b.toml", "inherits = \"a\"");
        let themes = Themes::with_folder(folder.path()).unwrap();
        let e = themes.find("a").unwrap_err();
        assert!(e.what.contains("inherits from itself"), "{}", e.what);
        assert_eq!(themes.find("mine").unwrap().ok.fg, Some(Color::Blue), "no other is broken");
    }

    #[test]
    fn a_theme_that_nobody_asks_for_breaks_none_and_is_listed_with_its_fault() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str| folder.path().join(name);
        std::fs::write(file("old.toml"), "[[[").unwrap();
        std::fs::write(file("new.toml"), "newkey = 1").unwrap();
        std::fs::write(file("dark.toml"), "text = 3").unwrap();
        std::fs::write(file("child.toml"), "inherits = \"old\"").unwrap();
        std::fs::create_dir(file("folder.toml")).unwrap();
        std::os::unix::fs::symlink("nowhere", file("gone.toml")).unwrap();
        let mut themes = Themes::with_folder(folder.path()).unwrap();
        assert!(themes.choose("light").is_ok());
        for name in ["old", "new", "dark", "child", "folder", "gone"] {
            let e = themes.choose(name).unwrap_err();
            assert!(
                e.what.starts_with("theme ") && e.exit == crate::error::Exit::Usage,
                "{}",
                e.what
            );
            let at = themes.names().position(|n| n == name).unwrap();
            assert_eq!(themes.broken(at), Some(&*e.what));
        }
        assert_eq!(themes.chosen().1, "light");
        // The default that nobody named is the built-in one.
        themes.choose_default("dark").unwrap();
        assert_eq!(themes.theme(), &Theme::named("dark").unwrap());
    }
}
