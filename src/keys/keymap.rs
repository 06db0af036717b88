//! Which keys mean what: the table's defaults with the configuration over them. A key means one thing in a place; a
//! second meaning is refused.

use super::action::{Action, Context, Entry, TABLE};
use super::{Code, Key};
use crate::error::{Error, Result};
use std::collections::{BTreeMap, HashMap};

/// Keys as configured: context, name of the action, keys. An empty list takes an action's keys away.
pub type Remaps = BTreeMap<String, BTreeMap<String, Vec<String>>>;

/// See the module's head.
#[derive(Debug, Clone)]
pub struct Keymap {
    /// For each entry of the table.
    keys: Vec<Vec<Key>>,
    lookup: HashMap<(Context, Key), Action>,
}

impl Default for Keymap {
    /// The table's own keys. (They are valid: a test proves it.)
    fn default() -> Keymap {
        let keys = TABLE.iter().map(|e| e.keys.iter().filter_map(|k| Key::parse(k)).collect());
        Keymap::of(keys.collect())
    }
}

impl Keymap {
    fn of(keys: Vec<Vec<Key>>) -> Keymap {
        let pairs = TABLE.iter().zip(&keys);
        let lookup =
            pairs.flat_map(|(e, keys)| keys.iter().map(|k| ((e.context, *k), e.action))).collect();
        Keymap { keys, lookup }
    }

    /// The defaults with a configuration over them.
    ///
    /// # Errors
    /// Exit 2 for an unknown place or action (with the nearest right one), for what is no key, for a key with two
    /// meanings, and when nothing is left to quit or to leave a dialog with.
    pub fn with(remaps: &Remaps) -> Result<Keymap> {
        let mut keys = Keymap::default().keys;
        for (place, actions) in remaps {
            let context =
                Context::ALL.into_iter().find(|c| c.name() == place).ok_or_else(|| {
                    let names = Context::ALL.iter().map(|c| c.name());
                    unknown("place", &format!("keys.{place}"), place, names)
                })?;
            for (id, named) in actions {
                let full = format!("keys.{place}.{id}");
                let at = TABLE.iter().position(|e| e.context == context && e.id() == *id);
                let at = at.ok_or_else(|| {
                    let ids: Vec<String> =
                        TABLE.iter().filter(|e| e.context == context).map(Entry::id).collect();
                    unknown("action", &full, id, ids.iter().map(String::as_str))
                })?;
                let parsed = named.iter().map(|k| {
                    Key::parse(k).ok_or_else(|| {
                        Error::usage(format!("{full}: {k:?} is no key"))
                            .hint("keys look like: q, G, ctrl-c, shift-tab, f5, space")
                    })
                });
                keys[at] = parsed.collect::<Result<_>>()?;
            }
        }
        let map = Keymap::of(keys);
        map.check()?;
        Ok(map)
    }

    fn check(&self) -> Result<()> {
        // First, since esc and ctrl-c mean something in most places: that they never send says more than that.
        for (e, keys) in TABLE.iter().zip(&self.keys) {
            let esc = keys.contains(&Key::plain(Code::Esc));
            if esc && matches!(e.action, Action::Quit | Action::QuitNow) {
                return Err(Error::usage(format!(
                    "keys.{}.{}: esc never quits",
                    e.context.name(),
                    e.id()
                )));
            }
            if let Some(key) = keys.iter().find(|k| k.never_sends())
                && e.does_something_elsewhere()
            {
                let (name, id) = (e.context.name(), e.id());
                return Err(Error::usage(format!("keys.{name}.{id}: {key} never sends anything"))
                    .hint("give it another key; esc and ctrl-c leave, in any program"));
            }
        }
        let mut taken: HashMap<(Context, Key), &Entry> = HashMap::new();
        for (e, keys) in TABLE.iter().zip(&self.keys) {
            for key in keys {
                if let Some(other) = taken.insert((e.context, *key), e) {
                    return Err(twice(*key, other, e));
                }
            }
        }
        for (e, keys) in TABLE.iter().zip(&self.keys) {
            let above = e.context.parent();
            for key in keys {
                if let Some(other) = above.and_then(|c| taken.get(&(c, *key))) {
                    return Err(twice(*key, other, e));
                }
            }
        }
        let needed = [
            (Context::Main, Action::Quit),
            (Context::Reissue, Action::Close),
            (Context::Form, Action::Close),
            (Context::Cancel, Action::Close),
            (Context::Quit, Action::Close),
        ];
        for (context, action) in needed {
            let at = TABLE.iter().position(|e| (e.context, e.action) == (context, action));
            if at.is_some_and(|i| self.keys[i].is_empty()) {
                let name = context.name();
                return Err(Error::usage(format!(
                    "keys.{name}: there would be no key left to leave with"
                )));
            }
        }
        Ok(())
    }

    /// Whether a project's file may say this. What is answered to a question, and what acts at once, is bound by the
    /// person alone: a project comes with a cloned repository.
    ///
    /// # Errors
    /// Exit 2, naming the key.
    pub fn check_project(remaps: &Remaps) -> Result<()> {
        for (place, actions) in remaps {
            for id in actions.keys() {
                let entry = TABLE.iter().find(|e| e.context.name() == place && e.id() == *id);
                if entry.is_some_and(|e| e.context.is_question() || e.acts_at_once()) {
                    let what = format!(
                        "keys.{place}.{id}: a project binds no key that answers a question or acts at the server"
                    );
                    return Err(Error::usage(what).hint(
                        "your own config.toml may; a project's file comes with its repository",
                    ));
                }
            }
        }
        Ok(())
    }

    /// What `key` means in `context`.
    pub fn lookup(&self, context: Context, key: Key) -> Option<Action> {
        let own = self.lookup.get(&(context, key));
        own.or_else(|| self.lookup.get(&(context.parent()?, key))).copied()
    }

    /// The keys of an entry of the table.
    pub fn keys(&self, entry: &Entry) -> &[Key] {
        let at = TABLE.iter().position(|e| std::ptr::eq(e, entry));
        at.map_or(&[], |i| self.keys[i].as_slice())
    }

    /// The key that is shown for an entry; empty when it has none.
    pub fn shown(&self, entry: &Entry) -> String {
        self.keys(entry).first().map(Key::to_string).unwrap_or_default()
    }

    /// The key of an action in a place, as a sentence names it: `Enter`, `y`; `no key` when it has none.
    pub fn word(&self, context: Context, action: Action) -> String {
        let entry = TABLE.iter().find(|e| (e.context, e.action) == (context, action));
        match entry.and_then(|e| self.keys(e).first()) {
            Some(key) => key.in_a_sentence(),
            None => "no key".into(),
        }
    }

    /// The key that is shown for an action on the main screen.
    pub fn key_of(&self, action: Action) -> String {
        let entry = TABLE.iter().find(|e| e.action == action && e.context <= Context::Calls);
        entry.map(|e| self.shown(e)).unwrap_or_default()
    }
}

fn twice(key: Key, a: &Entry, b: &Entry) -> Error {
    let name = |e: &Entry| format!("keys.{}.{}", e.context.name(), e.id());
    Error::usage(format!("{key} would mean two things: {} and {}", name(a), name(b)))
        .hint("give one of them another key; an empty list takes its keys away")
}

fn unknown<'a>(what: &str, full: &str, word: &str, names: impl Iterator<Item = &'a str>) -> Error {
    let mean = crate::near::nearest(word, names);
    let mean = mean.map(|n| format!("; did you mean {n}?")).unwrap_or_default();
    Error::usage(format!("{full}: there is no such {what}{mean}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn remap(place: &str, id: &str, keys: &[&str]) -> Remaps {
        let keys = keys.iter().map(|k| (*k).to_owned()).collect();
        [(place.to_owned(), [(id.to_owned(), keys)].into())].into()
    }

    #[test]
    fn the_tables_keys_are_keys_and_mean_one_thing_each() {
        for e in TABLE {
            for k in e.keys {
                let key = Key::parse(k).unwrap_or_else(|| panic!("{k} is no key"));
                assert_eq!(key.to_string(), *k, "written as it is printed");
                assert_eq!(Keymap::default().lookup(e.context, key), Some(e.action));
            }
        }
        Keymap::default().check().unwrap();
    }

    #[test]
    fn a_configuration_moves_keys_and_is_refused_where_it_can_not_be_meant() {
        let map = Keymap::with(&remap("main", "find", &["ctrl-f", "f5"])).unwrap();
        let key = |k| Key::parse(k).unwrap();
        assert_eq!(map.lookup(Context::Requests, key("f5")), Some(Action::Find));
        assert_eq!(map.lookup(Context::Main, key("f")), None);
        assert_eq!(map.key_of(Action::Find), "ctrl-f");
        for (place, id, keys, says) in [
            ("mian", "find", &["x"][..], "did you mean main?"),
            ("main", "fnd", &["x"], "did you mean find?"),
            ("main", "find", &["hyper-x"], "is no key"),
            ("main", "find", &["r"], "keys.main.find and keys.main.re-issue"),
            ("requests", "sort", &["q"], "would mean two things"),
            ("main", "quit", &[], "no key left"),
        ] {
            let e = Keymap::with(&remap(place, id, keys)).unwrap_err();
            assert!(e.what.contains(says), "{}", e.what);
        }
    }

    #[test]
    fn esc_and_ctrl_c_never_send_and_a_project_binds_no_answer() {
        for (place, id, keys, says) in [
            ("reissue", "send-it", &["esc"][..], "keys.reissue.send-it: esc never sends"),
            ("reissue", "send", &["f5", "ctrl-c"], "ctrl-c never sends"),
            ("form", "answer", &["alt-esc"], "alt-esc never sends"),
            ("form", "decline", &["esc"], "never sends"),
            ("cancel", "cancel-it", &["esc"], "never sends"),
            ("main", "reconnect", &["esc"], "never sends"),
            ("main", "re-issue", &["ctrl-c"], "never sends"),
            ("detail", "next-step", &["esc"], "never sends"),
            ("pick", "choose", &["esc"], "never sends"),
            ("quit", "quit-now", &["esc"], "esc never quits"),
            ("cancel", "leave-it", &[], "no key left"),
            ("form", "later", &[], "no key left"),
            ("quit", "stay", &[], "no key left"),
        ] {
            let e = Keymap::with(&remap(place, id, keys)).unwrap_err();
            assert!(e.what.contains(says), "{}", e.what);
        }
        for (place, id) in [
            ("reissue", "send"),
            ("reissue", "send-it"),
            ("reissue", "dont-send"),
            ("reissue", "quit"),
            ("arguments", "done-editing"),
            ("form", "answer"),
            ("cancel", "stop-waiting"),
            ("quit", "quit-now"),
            ("main", "reconnect"),
            ("main", "stop-waiting"),
        ] {
            let e = Keymap::check_project(&remap(place, id, &["f7"])).unwrap_err();
            assert!(e.what.contains("a project binds no key"), "{}", e.what);
            Keymap::with(&remap(place, id, &["f7"])).unwrap();
        }
        Keymap::check_project(&remap("main", "filter", &["f7"])).unwrap();
    }

    #[test]
    fn a_sentence_names_the_key_in_force() {
        let map = Keymap::default();
        assert_eq!(map.word(Context::Reissue, Action::Send), "Enter");
        assert_eq!(map.word(Context::Reissue, Action::Agree), "y");
        let map = Keymap::with(&remap("reissue", "send-it", &["ctrl-y", "f2"])).unwrap();
        assert_eq!(map.word(Context::Reissue, Action::Agree), "ctrl-y");
        let map = Keymap::with(&remap("reissue", "send-it", &[])).unwrap();
        assert_eq!(map.word(Context::Reissue, Action::Agree), "no key");
        for (key, word) in
            [("space", "Space"), ("f5", "F5"), ("shift-tab", "Shift-tab"), ("-", "-")]
        {
            assert_eq!(Key::parse(key).unwrap().in_a_sentence(), word);
        }
    }

    proptest! {
        /// What is written into a configuration is what the key then means, whichever entry and key.
        #[test]
        fn a_remapped_key_comes_back(at in 0..TABLE.len(), n in 1u8..=24, ctrl: bool, alt: bool) {
            let key = Key { ctrl, alt, ..Key::plain(super::Code::F(n)) };
            let e = &TABLE[at];
            let text = key.to_string();
            let map = Keymap::with(&remap(e.context.name(), &e.id(), &[&text])).unwrap();
            prop_assert_eq!(map.lookup(e.context, key), Some(e.action));
            prop_assert_eq!(map.keys(e), &[key][..]);
        }
    }
}
