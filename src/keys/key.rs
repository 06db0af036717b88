//! Keys as redial names them: `q`, `G`, `ctrl-c`, `shift-tab`, `space`. Parsing, printing, and the one
//! place where crossterm's key events (and the text area's inputs) are looked at.
//!
//! A key here is what a person means: `G` is `G`, however the terminal reports its shift.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui_textarea as textarea;
use std::fmt;

/// What is on the key cap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Code {
    Char(char),
    Enter,
    Esc,
    Tab,
    Backspace,
    Delete,
    Insert,
    Home,
    End,
    PageUp,
    PageDown,
    Up,
    Down,
    Left,
    Right,
    /// F1 to F24.
    F(u8),
}

/// A key with its modifiers. For characters shift is part of the character, never a modifier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    pub code: Code,
    pub ctrl: bool,
    pub alt: bool,
    pub shift: bool,
}

const NAMED: [(&str, Code); 15] = [
    ("enter", Code::Enter),
    ("esc", Code::Esc),
    ("tab", Code::Tab),
    ("backspace", Code::Backspace),
    ("delete", Code::Delete),
    ("insert", Code::Insert),
    ("home", Code::Home),
    ("end", Code::End),
    ("pageup", Code::PageUp),
    ("pagedown", Code::PageDown),
    ("up", Code::Up),
    ("down", Code::Down),
    ("left", Code::Left),
    ("right", Code::Right),
    ("space", Code::Char(' ')),
];

impl Key {
    /// A key without modifiers.
    pub fn plain(code: Code) -> Key {
        Key { code, ctrl: false, alt: false, shift: false }
    }

    /// Reads `ctrl-c`, `shift-tab`, `?`, `-`, `f5`. `None` for anything else.
    pub fn parse(text: &str) -> Option<Key> {
        let mut key = Key::plain(Code::Esc);
        let mut rest = text;
        loop {
            let (name, tail) = match rest.split_once('-') {
                // A dash that is the key itself.
                Some((name, tail)) if !name.is_empty() && !tail.is_empty() => (name, tail),
                _ => break,
            };
            match name {
                "ctrl" if !key.ctrl => key.ctrl = true,
                "alt" if !key.alt => key.alt = true,
                "shift" if !key.shift => key.shift = true,
                _ => return None,
            }
            rest = tail;
        }
        let mut chars = rest.chars();
        key.code = match (chars.next(), chars.next()) {
            // Space has a name; a control character is no key cap.
            (Some(c), None) if c != ' ' && !c.is_control() => Code::Char(c),
            _ => match NAMED.iter().find(|(name, _)| *name == rest) {
                Some((_, code)) => *code,
                None => Code::F(
                    rest.strip_prefix('f')?
                        .parse()
                        .ok()
                        .filter(|n| (1..=24).contains(n) && !rest.starts_with("f0"))?,
                ),
            },
        };
        (!(key.shift && matches!(key.code, Code::Char(_)))).then_some(key)
    }

    /// From a terminal's event; the flag says that it is a held key repeating. Releases are `None`.
    pub fn from_event(event: KeyEvent) -> Option<(Key, bool)> {
        let repeat = match event.kind {
            KeyEventKind::Press => false,
            KeyEventKind::Repeat => true,
            KeyEventKind::Release => return None,
        };
        let mut shift = event.modifiers.contains(KeyModifiers::SHIFT);
        let code = match event.code {
            KeyCode::Char(c) => {
                // Some terminals report shift beside the lower-case letter.
                let upper = c.to_uppercase().next().filter(|_| shift && c.is_ascii_lowercase());
                shift = false;
                Code::Char(upper.unwrap_or(c))
            }
            KeyCode::BackTab => {
                shift = true;
                Code::Tab
            }
            KeyCode::Enter => Code::Enter,
            KeyCode::Esc => Code::Esc,
            KeyCode::Tab => Code::Tab,
            KeyCode::Backspace => Code::Backspace,
            KeyCode::Delete => Code::Delete,
            KeyCode::Insert => Code::Insert,
            KeyCode::Home => Code::Home,
            KeyCode::End => Code::End,
            KeyCode::PageUp => Code::PageUp,
            KeyCode::PageDown => Code::PageDown,
            KeyCode::Up => Code::Up,
            KeyCode::Down => Code::Down,
            KeyCode::Left => Code::Left,
            KeyCode::Right => Code::Right,
            KeyCode::F(n @ 1..=24) => Code::F(n),
            _ => return None,
        };
        let key = Key {
            code,
            ctrl: event.modifiers.contains(KeyModifiers::CONTROL),
            alt: event.modifiers.contains(KeyModifiers::ALT),
            shift,
        };
        Some((key, repeat))
    }

    /// A key that leaves, in any program: it never sends anything.
    pub fn never_sends(self) -> bool {
        self.code == Code::Esc || (self.ctrl && self.code == Code::Char('c'))
    }

    /// Its name in a sentence: `Enter`, `y`, `ctrl-x`.
    pub fn in_a_sentence(self) -> String {
        let name = self.to_string();
        let cap = name.chars().next().filter(|_| name.len() > 1 && !self.ctrl && !self.alt);
        match cap {
            Some(c) if !matches!(self.code, Code::Char(c) if c != ' ') => {
                c.to_uppercase().chain(name.chars().skip(1)).collect()
            }
            _ => name,
        }
    }

    /// The character this key types, if it types one.
    pub fn typed(self) -> Option<char> {
        match self.code {
            Code::Char(c) if !self.ctrl && !self.alt => Some(c),
            _ => None,
        }
    }

    /// For the text area of a dialog.
    pub fn to_input(self) -> textarea::Input {
        use textarea::Key as T;
        let key = match self.code {
            Code::Char(c) => T::Char(c),
            Code::Enter => T::Enter,
            Code::Esc => T::Esc,
            Code::Tab => T::Tab,
            Code::Backspace => T::Backspace,
            Code::Delete => T::Delete,
            Code::Insert => T::Null,
            Code::Home => T::Home,
            Code::End => T::End,
            Code::PageUp => T::PageUp,
            Code::PageDown => T::PageDown,
            Code::Up => T::Up,
            Code::Down => T::Down,
            Code::Left => T::Left,
            Code::Right => T::Right,
            Code::F(n) => T::F(n),
        };
        textarea::Input { key, ctrl: self.ctrl, alt: self.alt, shift: self.shift }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (on, name) in [(self.ctrl, "ctrl-"), (self.alt, "alt-"), (self.shift, "shift-")] {
            if on {
                f.write_str(name)?;
            }
        }
        match self.code {
            Code::F(n) => write!(f, "f{n}"),
            code => match (NAMED.iter().find(|(_, named)| *named == code), code) {
                (Some((name, _)), _) => f.write_str(name),
                (None, Code::Char(c)) => write!(f, "{c}"),
                (None, _) => Ok(()),
            },
        }
    }
}

/// Reads a macro as the tests and the documentation write it: `jj<enter>f<ctrl-c>`, `<lt>` for `<`.
/// `None` when a name in it is no key.
pub fn macro_keys(text: &str) -> Option<Vec<Key>> {
    let mut keys = Vec::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        if c != '<' {
            keys.push(Key::plain(Code::Char(c)));
            continue;
        }
        let (name, tail) = rest.split_once('>')?;
        keys.push(if name == "lt" { Key::plain(Code::Char('<')) } else { Key::parse(name)? });
        rest = tail;
    }
    Some(keys)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_people_write() {
        let k = |code, ctrl, alt, shift| Key { code, ctrl, alt, shift };
        for (text, want) in [
            ("G", k(Code::Char('G'), false, false, false)),
            ("?", k(Code::Char('?'), false, false, false)),
            ("-", k(Code::Char('-'), false, false, false)),
            ("ctrl--", k(Code::Char('-'), true, false, false)),
            ("shift-tab", k(Code::Tab, false, false, true)),
            ("ctrl-alt-delete", k(Code::Delete, true, true, false)),
            ("f12", k(Code::F(12), false, false, false)),
            ("f", k(Code::Char('f'), false, false, false)),
            ("space", k(Code::Char(' '), false, false, false)),
        ] {
            assert_eq!(Key::parse(text), Some(want), "{text}");
            assert_eq!(want.to_string(), text);
        }
        for bad in [
            "",
            " ",
            "ctrl-",
            "shift-a",
            "f0",
            "f25",
            "f01",
            "Enter",
            "ctrl-ctrl-a",
            "hyper-x",
            "ab",
        ] {
            assert_eq!(Key::parse(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn terminals_that_report_shift_differently_mean_the_same_key() {
        let event = |code, mods| KeyEvent::new(code, mods);
        let key = |e| Key::from_event(e).map(|k| k.0.to_string());
        let g = Some("G".to_owned());
        assert_eq!(key(event(KeyCode::Char('G'), KeyModifiers::NONE)), g);
        assert_eq!(key(event(KeyCode::Char('G'), KeyModifiers::SHIFT)), g);
        assert_eq!(key(event(KeyCode::Char('g'), KeyModifiers::SHIFT)), g);
        assert_eq!(key(event(KeyCode::Char('?'), KeyModifiers::SHIFT)).as_deref(), Some("?"));
        assert_eq!(key(event(KeyCode::BackTab, KeyModifiers::SHIFT)).as_deref(), Some("shift-tab"));
        let release =
            KeyEvent::new_with_kind(KeyCode::Char('q'), KeyModifiers::NONE, KeyEventKind::Release);
        assert_eq!(Key::from_event(release), None);
    }

    fn any_key() -> impl Strategy<Value = Key> {
        let named = prop::sample::select(NAMED.map(|(_, code)| code).to_vec());
        let code = prop_oneof![
            any::<char>().prop_filter("a key cap", |c| !c.is_control()).prop_map(Code::Char),
            named,
            (1u8..=24).prop_map(Code::F),
        ];
        (code, any::<[bool; 3]>()).prop_map(|(code, [ctrl, alt, shift])| Key {
            code,
            ctrl,
            alt,
            shift: shift && !matches!(code, Code::Char(_)),
        })
    }

    proptest! {
        #[test]
        fn what_is_printed_is_read_back(key in any_key()) {
            prop_assert_eq!(Key::parse(&key.to_string()), Some(key));
        }

        #[test]
        fn macros_are_the_keys_they_name(keys in prop::collection::vec(any_key(), 0..8)) {
            let text: String = keys.iter().map(|k| match k.code {
                Code::Char('>') => ">".into(),
                Code::Char('<') => "<lt>".into(),
                _ => format!("<{k}>"),
            }).collect();
            let plain_angle = |k: &Key| matches!(k.code, Code::Char('<' | '>')) && (k.ctrl || k.alt);
            prop_assume!(!keys.iter().any(plain_angle));
            prop_assert_eq!(macro_keys(&text), Some(keys));
        }
    }
}
