//! The one table of what a person can do: name, doc, keys, where it applies. Keys, footer and help are
//! made from it; whether an action works *now* is asked of the app.

use super::app::App;
use super::keys::Key;

/// Everything a key can mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    Up,
    Down,
    PageUp,
    PageDown,
    Top,
    Bottom,
    NextPane,
    PrevPane,
    Details,
    Find,
    Reissue,
    Filter,
    Verify,
    Reconnect,
    Help,
    Back,
    Quit,
    // In the re-issue dialog.
    Send,
    Agree,
    EditArgs,
    Undo,
    // In any other dialog.
    Close,
    QuitNow,
}

/// Where a key is pressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Context {
    /// The main screen.
    Main,
    /// Typing a filter.
    Filter,
    /// The re-issue dialog, its question.
    Reissue,
    /// The re-issue dialog, in the arguments.
    Arguments,
    /// Help, the outcome of `verify`: things to read.
    Reading,
    /// The question before quitting.
    Quit,
}

impl Context {
    /// Its title in help.
    pub fn title(self) -> &'static str {
        match self {
            Context::Main => "anywhere on the screen",
            Context::Filter => "while typing a filter",
            Context::Reissue => "in the re-issue dialog",
            Context::Arguments => "in its arguments",
            Context::Reading => "in help and reports",
            Context::Quit => "when asked about quitting",
        }
    }
    /// All of them, in the order of the help.
    pub const ALL: [Context; 6] = [
        Context::Main,
        Context::Filter,
        Context::Reissue,
        Context::Arguments,
        Context::Reading,
        Context::Quit,
    ];
}

/// One line of the table.
#[derive(Debug)]
pub struct Entry {
    pub action: Action,
    pub context: Context,
    /// What the footer calls it.
    pub name: &'static str,
    /// What it does, for help.
    pub doc: &'static str,
    /// Its default keys; the first is the one that is shown.
    pub keys: &'static [&'static str],
    /// It stands in the footer while it works.
    pub footer: bool,
}

/// The table. The footer takes its order from here.
#[rustfmt::skip]
pub static TABLE: &[Entry] = {
    use Action as A;
    use Context::{Arguments, Filter, Main, Quit, Reading, Reissue};
    const fn entry(
        context: Context, action: Action, footer: bool, name: &'static str,
        keys: &'static [&'static str], doc: &'static str,
    ) -> Entry {
        Entry { action, context, name, doc, keys, footer }
    }
    &[
        entry(Main, A::Reconnect, true, "reconnect", &["R"], "connect again now; starts a dead server process anew"),
        entry(Main, A::Find, true, "find", &["f"], "look the selected request up at the server (changes nothing)"),
        entry(Main, A::Reissue, true, "re-issue", &["r"], "repeat the selected request, same request_id, behind the gate"),
        entry(Main, A::Details, true, "details", &["enter"], "go to the details of the selected request"),
        entry(Main, A::Back, true, "back", &["esc"], "back to the requests, clear the filter; never quits"),
        entry(Main, A::NextPane, true, "pane", &["tab"], "go to the next pane"),
        entry(Main, A::PrevPane, false, "pane back", &["shift-tab"], "go to the pane before"),
        entry(Main, A::Filter, true, "filter", &["/"], "show only requests that hold a text"),
        entry(Main, A::Verify, true, "verify", &["v"], "count requests and effects, check that each happened once"),
        entry(Main, A::Up, false, "up", &["up", "k"], "move up"),
        entry(Main, A::Down, false, "down", &["down", "j"], "move down"),
        entry(Main, A::PageUp, false, "page up", &["pageup", "ctrl-u"], "move up by a page"),
        entry(Main, A::PageDown, false, "page down", &["pagedown", "ctrl-d"], "move down by a page"),
        entry(Main, A::Top, false, "top", &["home", "g"], "go to the first"),
        entry(Main, A::Bottom, false, "bottom", &["end", "G"], "go to the last; on stderr, follow new lines"),
        entry(Main, A::Help, true, "help", &["?"], "this help"),
        entry(Main, A::Quit, true, "quit", &["q", "ctrl-c"], "quit; asks while calls are in flight"),
        entry(Filter, A::Details, true, "keep", &["enter"], "keep the filter and go to the rows"),
        entry(Filter, A::Back, true, "clear", &["esc"], "clear the filter"),
        entry(Filter, A::Up, false, "up", &["up"], "move up"),
        entry(Filter, A::Down, false, "down", &["down"], "move down"),
        entry(Filter, A::Quit, false, "quit", &["ctrl-c"], "quit"),
        entry(Reissue, A::Send, true, "send", &["enter"], "send the call, where Enter is the answer"),
        entry(Reissue, A::Agree, true, "send", &["y"], "send the call, where y is the answer"),
        entry(Reissue, A::EditArgs, true, "edit arguments", &["tab"], "go to the arguments"),
        entry(Reissue, A::Close, true, "don't send", &["esc"], "leave; nothing is sent"),
        entry(Reissue, A::Up, false, "up", &["up"], "read up"),
        entry(Reissue, A::Down, false, "down", &["down"], "read down"),
        entry(Reissue, A::Quit, false, "quit", &["ctrl-c"], "quit; nothing is sent"),
        entry(Arguments, A::EditArgs, true, "done editing", &["tab", "esc"], "back to the question"),
        entry(Arguments, A::Undo, true, "undo", &["ctrl-z"], "take the last change back"),
        entry(Arguments, A::Quit, false, "quit", &["ctrl-c"], "quit; nothing is sent"),
        entry(Reading, A::Up, false, "up", &["up", "k"], "read up"),
        entry(Reading, A::Down, false, "down", &["down", "j"], "read down"),
        entry(Reading, A::PageUp, false, "page up", &["pageup", "ctrl-u"], "read up by a page"),
        entry(Reading, A::PageDown, false, "page down", &["pagedown", "ctrl-d", "space"], "read down by a page"),
        entry(Reading, A::Top, false, "top", &["home", "g"], "go to the first line"),
        entry(Reading, A::Bottom, false, "bottom", &["end", "G"], "go to the last line"),
        entry(Reading, A::Close, true, "close", &["esc", "q", "?", "enter"], "close"),
        entry(Reading, A::Quit, false, "quit", &["ctrl-c"], "quit; asks while calls are in flight"),
        entry(Quit, A::QuitNow, true, "quit now", &["y", "ctrl-c"], "quit all the same"),
        entry(Quit, A::Close, true, "stay", &["esc", "n", "q", "enter"], "stay here"),
    ]
};

/// What `key` means in `context`.
pub fn lookup(context: Context, key: Key) -> Option<Action> {
    let mut entries = TABLE.iter().filter(|e| e.context == context);
    entries.find(|e| e.keys.iter().any(|k| Key::parse(k) == Some(key))).map(|e| e.action)
}

/// The entries that belong in the footer now, in order: only what works.
pub fn footer(app: &App) -> Vec<&'static Entry> {
    let context = app.context();
    TABLE.iter().filter(|e| e.context == context && e.footer && app.can(e.action)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn keys_parse_and_none_is_used_twice_in_a_context() {
        let mut seen = HashSet::new();
        for e in TABLE {
            for k in e.keys {
                let key = Key::parse(k).unwrap_or_else(|| panic!("{k} is no key"));
                assert_eq!(key.to_string(), *k, "written as it is printed");
                assert!(seen.insert((e.context, key)), "{k} twice in {:?}", e.context);
                assert_eq!(lookup(e.context, key), Some(e.action));
            }
        }
    }

    #[test]
    fn every_action_and_context_is_there_and_told() {
        for c in Context::ALL {
            assert!(TABLE.iter().any(|e| e.context == c), "{c:?} has keys");
            assert!(TABLE.iter().any(|e| e.context == c && e.footer), "{c:?} shows its way on");
        }
        assert!(
            TABLE.iter().all(|e| !e.doc.is_empty() && !e.name.is_empty() && !e.keys.is_empty())
        );
        // Escape never quits, anywhere.
        let esc = Key::parse("esc").unwrap();
        for c in Context::ALL {
            assert!(!matches!(lookup(c, esc), Some(Action::Quit | Action::QuitNow)), "{c:?}");
        }
    }
}
