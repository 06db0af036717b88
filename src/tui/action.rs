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
    /// Where it stands in the footer, from 1; 0 keeps it out.
    pub footer: u8,
}

const fn entry(
    context: Context,
    action: Action,
    keys: &'static [&'static str],
    name: &'static str,
    footer: u8,
    doc: &'static str,
) -> Entry {
    Entry { action, context, name, doc, keys, footer }
}

/// The table.
pub static TABLE: &[Entry] = {
    use Action as A;
    use Context::{Arguments, Filter, Main, Quit, Reading, Reissue};
    &[
        entry(
            Main,
            A::Find,
            &["f"],
            "find",
            2,
            "look the selected request up at the server (changes nothing)",
        ),
        entry(
            Main,
            A::Reissue,
            &["r"],
            "re-issue",
            3,
            "repeat the selected request, same request_id, behind the gate",
        ),
        entry(
            Main,
            A::Details,
            &["enter"],
            "details",
            4,
            "open the selected request, or go on to its details",
        ),
        entry(
            Main,
            A::Reconnect,
            &["R"],
            "reconnect",
            1,
            "connect again now; starts a dead server process anew",
        ),
        entry(
            Main,
            A::Verify,
            &["v"],
            "verify",
            6,
            "count requests and effects, check that each happened once",
        ),
        entry(Main, A::Filter, &["/"], "filter", 5, "show only requests that hold a text"),
        entry(Main, A::NextPane, &["tab"], "pane", 7, "go to the next pane"),
        entry(Main, A::PrevPane, &["shift-tab"], "pane back", 0, "go to the pane before"),
        entry(Main, A::Up, &["up", "k"], "up", 0, "move up"),
        entry(Main, A::Down, &["down", "j"], "down", 0, "move down"),
        entry(Main, A::PageUp, &["pageup", "ctrl-u"], "page up", 0, "move up by a page"),
        entry(Main, A::PageDown, &["pagedown", "ctrl-d"], "page down", 0, "move down by a page"),
        entry(Main, A::Top, &["home", "g"], "top", 0, "go to the first"),
        entry(
            Main,
            A::Bottom,
            &["end", "G"],
            "bottom",
            0,
            "go to the last (stderr: follow new lines)",
        ),
        entry(
            Main,
            A::Back,
            &["esc"],
            "back",
            0,
            "clear the filter, go back to the requests; never quits",
        ),
        entry(Main, A::Help, &["?"], "help", 8, "this help"),
        entry(Main, A::Quit, &["q", "ctrl-c"], "quit", 9, "quit; asks while calls are in flight"),
        entry(Filter, A::Details, &["enter"], "keep", 1, "keep the filter and go to the rows"),
        entry(Filter, A::Back, &["esc"], "clear", 2, "clear the filter"),
        entry(Filter, A::Up, &["up"], "up", 0, "move up"),
        entry(Filter, A::Down, &["down"], "down", 0, "move down"),
        entry(Filter, A::Quit, &["ctrl-c"], "quit", 0, "quit"),
        entry(Reissue, A::Send, &["enter"], "send", 1, "send the call, where Enter is the answer"),
        entry(Reissue, A::Agree, &["y"], "send", 1, "send the call, where y is the answer"),
        entry(Reissue, A::EditArgs, &["tab"], "edit arguments", 3, "go to the arguments"),
        entry(Reissue, A::Close, &["esc"], "don't send", 2, "leave; nothing is sent"),
        entry(Reissue, A::Up, &["up"], "up", 0, "read up"),
        entry(Reissue, A::Down, &["down"], "down", 0, "read down"),
        entry(Reissue, A::Quit, &["ctrl-c"], "quit", 0, "quit"),
        entry(Arguments, A::EditArgs, &["tab", "esc"], "done editing", 1, "back to the question"),
        entry(Arguments, A::Undo, &["ctrl-z"], "undo", 2, "take the last change back"),
        entry(Arguments, A::Quit, &["ctrl-c"], "quit", 0, "quit"),
        entry(Reading, A::Close, &["esc", "q", "?", "enter"], "close", 1, "close"),
        entry(Reading, A::Up, &["up", "k"], "up", 0, "read up"),
        entry(Reading, A::Down, &["down", "j"], "down", 0, "read down"),
        entry(Reading, A::PageUp, &["pageup", "ctrl-u"], "page up", 0, "read up by a page"),
        entry(
            Reading,
            A::PageDown,
            &["pagedown", "ctrl-d", "space"],
            "page down",
            0,
            "read down by a page",
        ),
        entry(Reading, A::Top, &["home", "g"], "top", 0, "go to the first line"),
        entry(Reading, A::Bottom, &["end", "G"], "bottom", 0, "go to the last line"),
        entry(Reading, A::Quit, &["ctrl-c"], "quit", 0, "quit"),
        entry(Quit, A::QuitNow, &["y", "ctrl-c"], "quit now", 1, "quit all the same"),
        entry(Quit, A::Close, &["esc", "n", "q", "enter"], "stay", 2, "stay here"),
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
    let mut entries: Vec<&Entry> = TABLE
        .iter()
        .filter(|e| e.context == context && e.footer > 0 && app.can(e.action))
        .collect();
    entries.sort_by_key(|e| e.footer);
    entries
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
            assert!(
                c == Context::Filter || TABLE.iter().any(|e| e.context == c && e.footer == 1),
                "{c:?} shows its way on"
            );
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
