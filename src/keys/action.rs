//! The one table of what a person can do: name, doc, default keys, where it applies. Footer, help, palette and the
//! README's table are made from it; whether an action works *now* is asked of the screen, which keys it has of `keymap`.

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
    Next,
    Find,
    Reissue,
    Filter,
    GoTo,
    Verify,
    Reconnect,
    Palette,
    Help,
    Back,
    Quit,
    // The time line.
    TimeLine,
    Findings,
    Source,
    Mark,
    NextMark,
    Peer,
    StderrNear,
    FirstError,
    Death,
    // The rows.
    Need,
    Sort,
    Turn,
    Follow,
    Pause,
    // The screen itself.
    Zoom,
    Taller,
    Shorter,
    Wider,
    Narrower,
    Even,
    Themes,
    Mouse,
    Suspend,
    Redraw,
    // A call that waits.
    Cancel,
    StopWaiting,
    // Words to take along.
    Copy,
    Log,
    // JSON.
    Json,
    Fold,
    FoldAll,
    Raw,
    Search,
    Again,
    // The server's question.
    Answer,
    Accept,
    Decline,
    // In the re-issue dialog.
    Send,
    Agree,
    EditArgs,
    Undo,
    // In any other dialog.
    Choose,
    Close,
    QuitNow,
}

/// Where a key is pressed. The panes' own keys come before those of the whole screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Context {
    /// The main screen.
    Main,
    /// In the pane of requests.
    Requests,
    /// In the pane of details.
    Detail,
    /// In the pane of calls.
    Calls,
    /// In the pane of verify.
    Verify,
    /// Typing a filter.
    Filter,
    /// Typing a request_id to go to.
    GoTo,
    /// The re-issue dialog, its question.
    Reissue,
    /// The re-issue dialog, in the arguments.
    Arguments,
    /// The server's question, a form.
    Form,
    /// The time line.
    Timeline,
    /// The findings of the audit.
    Findings,
    /// A JSON text.
    Json,
    /// Typing what is searched in help or JSON.
    Search,
    /// Choosing from a list: palette, themes, what to copy.
    Pick,
    /// Help, reports: things to read.
    Reading,
    /// The question before a call is cancelled.
    Cancel,
    /// The question before quitting.
    Quit,
}

impl Context {
    /// Its title in help.
    pub fn title(self) -> &'static str {
        match self {
            Context::Main => "anywhere on the screen",
            Context::Requests => "in requests",
            Context::Detail => "in detail",
            Context::Calls => "in calls",
            Context::Verify => "in verify",
            Context::Filter => "while typing a filter",
            Context::GoTo => "while typing a request_id",
            Context::Reissue => "in the re-issue dialog",
            Context::Arguments => "in its arguments",
            Context::Form => "in a server's question",
            Context::Timeline => "in the time line",
            Context::Findings => "in the findings",
            Context::Json => "in a JSON text",
            Context::Search => "while typing a search",
            Context::Pick => "in a list to choose from",
            Context::Reading => "in help and reports",
            Context::Cancel => "when asked about cancelling a call",
            Context::Quit => "when asked about quitting",
        }
    }

    /// Its name in the configuration.
    pub fn name(self) -> &'static str {
        match self {
            Context::Main => "main",
            Context::Requests => "requests",
            Context::Detail => "detail",
            Context::Calls => "calls",
            Context::Verify => "verify",
            Context::Filter => "filter",
            Context::GoTo => "go-to",
            Context::Reissue => "reissue",
            Context::Arguments => "arguments",
            Context::Form => "form",
            Context::Timeline => "timeline",
            Context::Findings => "findings",
            Context::Json => "json",
            Context::Search => "search",
            Context::Pick => "pick",
            Context::Reading => "reading",
            Context::Cancel => "cancel",
            Context::Quit => "quit",
        }
    }

    /// All of them, in the order of the help.
    pub const ALL: [Context; 18] = [
        Context::Main,
        Context::Requests,
        Context::Detail,
        Context::Calls,
        Context::Verify,
        Context::Filter,
        Context::GoTo,
        Context::Reissue,
        Context::Arguments,
        Context::Form,
        Context::Timeline,
        Context::Findings,
        Context::Json,
        Context::Search,
        Context::Pick,
        Context::Reading,
        Context::Cancel,
        Context::Quit,
    ];

    /// Where a key is looked for that isn't bound here.
    pub fn parent(self) -> Option<Context> {
        match self {
            Context::Requests | Context::Detail | Context::Calls | Context::Verify => {
                Some(Context::Main)
            }
            _ => None,
        }
    }

    /// A question stands there, and keys answer it.
    pub fn is_question(self) -> bool {
        use Context as C;
        matches!(self, C::Reissue | C::Arguments | C::Form | C::Cancel | C::Quit)
    }

    /// Of the screen itself: anywhere on it, or in a pane.
    pub fn is_screen(self) -> bool {
        self == Context::Main || self.parent().is_some()
    }
}

/// One line of the table.
#[derive(Debug)]
pub struct Entry {
    pub action: Action,
    pub context: Context,
    /// What the footer calls it, and with dashes for spaces its name in the configuration.
    pub name: &'static str,
    /// What it does, for help.
    pub doc: &'static str,
    /// Its default keys; the first is the one that is shown.
    pub keys: &'static [&'static str],
    /// It stands in the footer while it works.
    pub footer: bool,
}

impl Entry {
    /// It acts at the server without a question.
    pub fn acts_at_once(&self) -> bool {
        use Action as A;
        self.context.is_screen() && matches!(self.action, A::Reconnect | A::StopWaiting | A::Find)
    }

    /// It sends something, starts something, or leads there by its own choice.
    pub fn does_something_elsewhere(&self) -> bool {
        use Action as A;
        let answers = matches!(
            self.action,
            A::Send | A::Agree | A::Accept | A::Decline | A::Cancel | A::StopWaiting | A::Reissue
        );
        let picks = self.context == Context::Pick && self.action == A::Choose;
        answers || picks || self.acts_at_once() || self.action == A::Next
    }

    /// Its name in the configuration.
    pub fn id(&self) -> String {
        self.name.replace(' ', "-").replace('\'', "")
    }
}

/// The table. The footer takes its order from here.
#[rustfmt::skip]
pub static TABLE: &[Entry] = {
    use Action as A;
    use Context::{
        Arguments, Calls, Cancel, Detail, Filter, Findings, Form, GoTo, Json, Main, Pick, Quit, Reading, Reissue, Requests, Search, Timeline,
        Verify,
    };
    const fn entry(
        context: Context, action: Action, footer: bool, name: &'static str,
        keys: &'static [&'static str], doc: &'static str,
    ) -> Entry {
        Entry { action, context, name, doc, keys, footer }
    }
    &[
        entry(Main, A::Answer, true, "answer", &["a"], "answer the server's question"),
        entry(Main, A::Reconnect, true, "reconnect", &["R"], "connect again now; starts a dead server process anew"),
        entry(Main, A::Cancel, true, "cancel call", &["x"], "cancel the waiting call: its outcome stays unknown; asks first"),
        entry(Main, A::StopWaiting, true, "stop waiting", &["w"], "stop waiting for the call, but keep listening for its answer"),
        entry(Detail, A::Next, true, "next step", &["enter"], "do the next step that detail names"),
        entry(Detail, A::Json, true, "JSON", &["J"], "open the result, the server's word or an answer as a tree"),
        entry(Main, A::Find, true, "find", &["f"], "look the selected request up at the server (changes nothing)"),
        entry(Main, A::Reissue, true, "re-issue", &["r"], "repeat the selected request, same request_id, behind the gate"),
        entry(Requests, A::Details, true, "details", &["enter"], "go to the details of the selected request"),
        entry(Calls, A::Details, true, "its request", &["enter"], "go to the details of the selected call's request"),
        entry(Calls, A::Json, true, "JSON", &["J"], "open the selected call's answer as a tree"),
        entry(Main, A::Back, true, "back", &["esc"], "back to the requests, unzoom, clear the filter; never quits"),
        entry(Main, A::NextPane, true, "pane", &["tab"], "go to the next pane"),
        entry(Main, A::PrevPane, false, "pane back", &["shift-tab"], "go to the pane before"),
        entry(Main, A::Filter, true, "filter", &["/"], "show only requests that hold a text"),
        entry(Main, A::GoTo, false, "go to", &["o"], "go to a request_id that is typed, in the list or not"),
        entry(Verify, A::Details, true, "its request", &["enter"], "go to the details of the selected request"),
        entry(Main, A::Verify, true, "verify", &["v"], "check that each request happened once; again with every change"),
        entry(Main, A::TimeLine, true, "time line", &["T"], "every frame and event, of a recording or this session"),
        entry(Main, A::Findings, false, "findings", &["A"], "what the audit finds in the recording, as it grows"),
        entry(Main, A::Copy, true, "copy", &["y"], "copy request_id, row, command, frame or curl"),
        entry(Requests, A::Need, false, "needs you", &["n"], "go to the first request that needs a person, then the next one"),
        entry(Requests, A::Sort, false, "sort", &["s"], "sort by the next column"),
        entry(Requests, A::Turn, false, "turn", &["S"], "turn the order round"),
        entry(Requests, A::Follow, false, "follow", &["F"], "keep the selection on the first line"),
        entry(Requests, A::Pause, false, "pause", &["p"], "let rows stand still; again lets them move"),
        entry(Main, A::Up, false, "up", &["up", "k"], "move up"),
        entry(Main, A::Down, false, "down", &["down", "j"], "move down"),
        entry(Main, A::PageUp, false, "page up", &["pageup", "ctrl-u"], "move up by a page"),
        entry(Main, A::PageDown, false, "page down", &["pagedown", "ctrl-d"], "move down by a page"),
        entry(Main, A::Top, false, "top", &["home", "g"], "go to the first"),
        entry(Main, A::Bottom, false, "bottom", &["end", "G"], "go to the last; on stderr, follow new lines"),
        entry(Main, A::Zoom, false, "zoom", &["z"], "show this pane alone; again shows all"),
        entry(Main, A::Taller, false, "taller", &["+"], "move the border under the pane down"),
        entry(Main, A::Shorter, false, "shorter", &["-"], "move the border under the pane up"),
        entry(Main, A::Wider, false, "wider", &[">"], "move the border beside the pane right"),
        entry(Main, A::Narrower, false, "narrower", &["<"], "move the border beside the pane left"),
        entry(Main, A::Even, false, "even", &["="], "give the panes their own sizes again"),
        entry(Main, A::Log, false, "sent", &["L"], "everything this run sent, when, and what came of it"),
        entry(Main, A::Themes, false, "theme", &["t"], "choose a theme"),
        entry(Main, A::Mouse, false, "mouse", &["m"], "switch the mouse off or on (off, the terminal selects text)"),
        entry(Main, A::Suspend, false, "suspend", &["ctrl-z"], "stop and go to the shell; fg comes back"),
        entry(Main, A::Redraw, false, "redraw", &["ctrl-l"], "draw the screen anew, over whatever else was written there"),
        entry(Main, A::Palette, true, "all", &[":"], "every action, by name"),
        entry(Main, A::Help, true, "help", &["?"], "this help"),
        entry(Main, A::Quit, true, "quit", &["q", "ctrl-c"], "quit; asks while calls are in flight"),
        entry(Filter, A::Details, true, "keep", &["enter"], "keep the filter and go to the rows"),
        entry(Filter, A::Back, true, "clear", &["esc"], "clear the filter"),
        entry(Filter, A::Up, false, "up", &["up"], "move up"),
        entry(Filter, A::Down, false, "down", &["down"], "move down"),
        entry(Filter, A::Quit, false, "quit", &["ctrl-c"], "quit; asks while calls are in flight"),
        entry(GoTo, A::Choose, true, "go there", &["enter"], "select it, then look it up or repeat it"),
        entry(GoTo, A::Close, true, "leave", &["esc"], "back to the screen"),
        entry(GoTo, A::Quit, false, "quit", &["ctrl-c"], "quit; asks while calls are in flight"),
        entry(Reissue, A::Send, true, "send", &["enter"], "send the call, where Enter is the answer"),
        entry(Reissue, A::Agree, true, "send it", &["y"], "send the call, where y is the answer"),
        entry(Reissue, A::EditArgs, true, "edit arguments", &["tab"], "go to the arguments"),
        entry(Reissue, A::Close, true, "don't send", &["esc"], "leave; nothing is sent"),
        entry(Reissue, A::Up, false, "up", &["up"], "read up"),
        entry(Reissue, A::Down, false, "down", &["down"], "read down"),
        entry(Reissue, A::PageUp, false, "page up", &["pageup"], "read up by a page"),
        entry(Reissue, A::PageDown, false, "page down", &["pagedown"], "read down by a page"),
        entry(Reissue, A::Top, false, "top", &["home"], "go to the first line"),
        entry(Reissue, A::Bottom, false, "bottom", &["end"], "go to the last line"),
        entry(Reissue, A::Quit, false, "quit", &["ctrl-c"], "quit; nothing is sent"),
        entry(Arguments, A::EditArgs, true, "done editing", &["tab", "esc"], "back to the question"),
        entry(Arguments, A::Undo, true, "undo", &["ctrl-z"], "take the last change back"),
        entry(Arguments, A::Quit, false, "quit", &["ctrl-c"], "quit; nothing is sent"),
        entry(Form, A::Accept, true, "answer", &["enter"], "send these values to the server"),
        entry(Form, A::Down, true, "next field", &["tab", "down"], "go to the next field"),
        entry(Form, A::Up, false, "field back", &["shift-tab", "up"], "go to the field before"),
        entry(Form, A::PageUp, false, "page up", &["pageup"], "read up by a page"),
        entry(Form, A::PageDown, false, "page down", &["pagedown"], "read down by a page"),
        entry(Form, A::Decline, true, "decline", &["ctrl-d"], "tell the server no"),
        entry(Form, A::Close, true, "later", &["esc"], "leave it open; the call goes on waiting"),
        entry(Form, A::Quit, false, "quit", &["ctrl-c"], "quit; asks while calls are in flight"),
        entry(Timeline, A::Filter, true, "filter", &["/"], "show only what matches: tool: outcome: kind: req: text: …"),
        entry(Timeline, A::Peer, true, "answer", &["a"], "go to its answer, or to what it answers"),
        entry(Timeline, A::Details, true, "its request", &["l"], "go to the ledger row and the details of its request"),
        entry(Timeline, A::StderrNear, true, "stderr", &["s"], "go to the stderr around it"),
        entry(Timeline, A::FirstError, true, "first error", &["e"], "go to the first thing that went wrong"),
        entry(Timeline, A::Again, false, "next error", &["n"], "go to the next thing that went wrong"),
        entry(Timeline, A::Death, true, "death", &["d"], "go to the next end of a server, and what waited then"),
        entry(Timeline, A::Raw, true, "view", &["x"], "the text pretty, raw, in hex"),
        entry(Timeline, A::Zoom, true, "text", &["enter", "z"], "the text alone; again both"),
        entry(Timeline, A::NextPane, false, "list or text", &["tab"], "let the keys move the text, or the list"),
        entry(Timeline, A::Fold, false, "fold", &["space"], "fold or unfold what begins on this line of the text"),
        entry(Timeline, A::Follow, true, "follow", &["F"], "stay at the end as events come"),
        entry(Timeline, A::Pause, false, "pause", &["p"], "let the list stand still; again lets it go on"),
        entry(Timeline, A::Mark, true, "bookmark", &["b"], "set a bookmark, or take it away"),
        entry(Timeline, A::NextMark, false, "next bookmark", &["B"], "go to the next bookmark"),
        entry(Timeline, A::Back, false, "where from", &["backspace", "ctrl-o"], "go back to where the last jump began"),
        entry(Timeline, A::Source, true, "other session", &["o"], "the recording, or this session"),
        entry(Timeline, A::Copy, false, "copy", &["y"], "copy the text"),
        entry(Timeline, A::Findings, false, "findings", &["A"], "what the audit finds in the recording"),
        entry(Timeline, A::Up, false, "up", &["up", "k"], "move up"),
        entry(Timeline, A::Down, false, "down", &["down", "j"], "move down"),
        entry(Timeline, A::PageUp, false, "page up", &["pageup", "ctrl-u"], "move up by a page"),
        entry(Timeline, A::PageDown, false, "page down", &["pagedown", "ctrl-d"], "move down by a page"),
        entry(Timeline, A::Top, false, "top", &["home", "g"], "go to the first event"),
        entry(Timeline, A::Bottom, false, "bottom", &["end", "G"], "go to the last event, and follow"),
        entry(Timeline, A::Close, true, "close", &["esc", "q"], "back to the panes"),
        entry(Timeline, A::Quit, false, "quit", &["ctrl-c"], "quit; asks while calls are in flight"),
        entry(Findings, A::Details, true, "its frame", &["enter"], "go to its frame in the time line"),
        entry(Findings, A::Up, false, "up", &["up", "k"], "move up"),
        entry(Findings, A::Down, false, "down", &["down", "j"], "move down"),
        entry(Findings, A::PageUp, false, "page up", &["pageup", "ctrl-u"], "move up by a page"),
        entry(Findings, A::PageDown, false, "page down", &["pagedown", "ctrl-d"], "move down by a page"),
        entry(Findings, A::Top, false, "top", &["home", "g"], "go to the first"),
        entry(Findings, A::Bottom, false, "bottom", &["end", "G"], "go to the last"),
        entry(Findings, A::Close, true, "close", &["esc", "q"], "back to the panes"),
        entry(Findings, A::Quit, false, "quit", &["ctrl-c"], "quit; asks while calls are in flight"),
        entry(Json, A::Fold, true, "fold", &["enter", "space"], "fold or unfold what begins on this line"),
        entry(Json, A::FoldAll, true, "fold all", &["z"], "fold everything below the first level, or unfold it"),
        entry(Json, A::Raw, true, "raw", &["r"], "the text as it was received; again shows the tree"),
        entry(Json, A::Search, true, "search", &["/"], "search in the text"),
        entry(Json, A::NextPane, true, "next text", &["tab"], "go to the next text of the request"),
        entry(Json, A::Again, false, "next hit", &["n"], "go to the next hit"),
        entry(Json, A::Copy, true, "copy", &["y"], "copy the whole text"),
        entry(Json, A::Up, false, "up", &["up", "k"], "move up"),
        entry(Json, A::Down, false, "down", &["down", "j"], "move down"),
        entry(Json, A::PageUp, false, "page up", &["pageup", "ctrl-u"], "move up by a page"),
        entry(Json, A::PageDown, false, "page down", &["pagedown", "ctrl-d"], "move down by a page"),
        entry(Json, A::Top, false, "top", &["home", "g"], "go to the first line"),
        entry(Json, A::Bottom, false, "bottom", &["end", "G"], "go to the last line"),
        entry(Json, A::Close, true, "close", &["esc", "q"], "close"),
        entry(Json, A::Quit, false, "quit", &["ctrl-c"], "quit; asks while calls are in flight"),
        entry(Search, A::Choose, true, "keep", &["enter"], "keep the search"),
        entry(Search, A::Close, true, "clear", &["esc"], "clear the search"),
        entry(Search, A::Up, false, "up", &["up"], "move up"),
        entry(Search, A::Down, false, "down", &["down"], "move down"),
        entry(Search, A::Quit, false, "quit", &["ctrl-c"], "quit; asks while calls are in flight"),
        entry(Pick, A::Choose, true, "choose", &["enter"], "take the selected line"),
        entry(Pick, A::Up, false, "up", &["up", "ctrl-p"], "move up"),
        entry(Pick, A::Down, false, "down", &["down", "ctrl-n", "tab"], "move down"),
        entry(Pick, A::Close, true, "leave", &["esc"], "leave without choosing"),
        entry(Pick, A::Quit, false, "quit", &["ctrl-c"], "quit; asks while calls are in flight"),
        entry(Reading, A::Search, true, "search", &["/"], "show only help lines that hold a text"),
        entry(Reading, A::Up, false, "up", &["up", "k"], "read up"),
        entry(Reading, A::Down, false, "down", &["down", "j"], "read down"),
        entry(Reading, A::PageUp, false, "page up", &["pageup", "ctrl-u"], "read up by a page"),
        entry(Reading, A::PageDown, false, "page down", &["pagedown", "ctrl-d", "space"], "read down by a page"),
        entry(Reading, A::Top, false, "top", &["home", "g"], "go to the first line"),
        entry(Reading, A::Bottom, false, "bottom", &["end", "G"], "go to the last line"),
        entry(Reading, A::Close, true, "close", &["esc", "q", "?", "enter"], "close"),
        entry(Reading, A::Quit, false, "quit", &["ctrl-c"], "quit; asks while calls are in flight"),
        entry(Cancel, A::Cancel, true, "cancel it", &["y"], "tell the server that the call is no longer wanted"),
        entry(Cancel, A::StopWaiting, true, "stop waiting", &["w"], "stop waiting instead, and keep listening"),
        entry(Cancel, A::PageUp, false, "page up", &["pageup"], "read up by a page"),
        entry(Cancel, A::PageDown, false, "page down", &["pagedown"], "read down by a page"),
        entry(Cancel, A::Close, true, "leave it", &["esc", "n", "q", "enter"], "go on waiting"),
        entry(Cancel, A::Quit, false, "quit", &["ctrl-c"], "quit; asks while calls are in flight"),
        entry(Quit, A::QuitNow, true, "quit now", &["y", "ctrl-c"], "quit all the same"),
        entry(Quit, A::PageUp, false, "page up", &["pageup"], "read up by a page"),
        entry(Quit, A::PageDown, false, "page down", &["pagedown"], "read down by a page"),
        entry(Quit, A::Close, true, "stay", &["esc", "n", "q", "enter"], "stay here"),
    ]
};

/// The README's table of keys: what can be done on the screen itself, with its default keys.
pub fn markdown() -> String {
    let mut out = String::from("| key | where | what it does |\n|---|---|---|\n");
    let screen = Context::ALL
        .into_iter()
        .filter(|c| c.is_screen() || matches!(c, Context::Timeline | Context::Json));
    for e in screen.flat_map(|c| TABLE.iter().filter(move |e| e.context == c)) {
        let keys: Vec<String> = e.keys.iter().map(|k| format!("`{k}`")).collect();
        let place = if e.context == Context::Main { "anywhere" } else { e.context.title() };
        out += &format!("| {} | {place} | {} |\n", keys.join(" "), e.doc);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::Key;
    use std::collections::HashSet;

    #[test]
    fn names_are_unique_in_a_context() {
        let mut seen = HashSet::new();
        for e in TABLE {
            assert!(seen.insert((e.context, e.id())), "{} twice in {:?}", e.id(), e.context);
        }
    }

    #[test]
    fn every_action_and_context_is_there_and_told() {
        for c in Context::ALL {
            assert!(TABLE.iter().any(|e| e.context == c), "{c:?} has keys");
            let shown = TABLE.iter().any(|e| e.context == c && e.footer);
            assert!(shown, "{c:?} shows its way on");
        }
        assert!(
            TABLE.iter().all(|e| !e.doc.is_empty() && !e.name.is_empty() && !e.keys.is_empty())
        );
        // Escape never quits, anywhere.
        let esc = |e: &&Entry| e.keys.iter().any(|k| Key::parse(k) == Key::parse("esc"));
        assert!(
            !TABLE.iter().filter(esc).any(|e| matches!(e.action, Action::Quit | Action::QuitNow))
        );
    }
}
