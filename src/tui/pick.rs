//! A list to choose from, narrowed by typing: the palette of all actions, the themes, what to copy. Pure.

use super::app::App;
use crate::keys::action::{Action, Context, TABLE};
use nucleo_matcher::pattern::{CaseMatching, Normalization, Pattern};
use nucleo_matcher::{Config, Matcher, Utf32Str};
use std::borrow::Cow;

/// What is chosen from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Palette,
    Themes,
    Copy,
}

/// What can be copied of the selected request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    RequestId,
    /// The row, judged, as JSON.
    Row,
    /// The command that would do the repeat without the screen.
    Command,
    /// The frames of its newest call, as they were on the wire.
    Frame,
    /// The newest call as a curl command (HTTP).
    Curl,
}

impl What {
    pub const ALL: [What; 5] = [What::RequestId, What::Row, What::Command, What::Frame, What::Curl];
    /// For the list and the line that says what was copied.
    pub fn words(self) -> &'static str {
        match self {
            What::RequestId => "request_id",
            What::Row => "the row as JSON",
            What::Command => "the redial command that repeats it",
            What::Frame => "the raw frames of its newest call",
            What::Curl => "its newest call as curl",
        }
    }
}

/// What is done when a line is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    Do(Action),
    Theme(usize),
    Copy(What),
}

/// A line of the list.
#[derive(Debug, Clone, PartialEq)]
pub struct Item {
    pub choice: Choice,
    pub name: String,
    /// The key that does it, or what else stands at the right.
    pub key: String,
    pub doc: Cow<'static, str>,
    /// It works now.
    pub works: bool,
}

/// See the module's head.
#[derive(Debug)]
pub struct Pick {
    pub kind: Kind,
    pub query: String,
    /// The selected line among those that match.
    pub at: usize,
    /// The theme to go back to.
    pub before: usize,
}

impl Pick {
    /// Nothing typed yet.
    pub fn new(kind: Kind, app: &App) -> Pick {
        let before = app.themes.chosen().0;
        let at = if kind == Kind::Themes { before } else { 0 };
        Pick { kind, query: String::new(), at, before }
    }

    /// Its title.
    pub fn title(&self) -> &'static str {
        match self.kind {
            Kind::Palette => "all actions",
            Kind::Themes => "theme",
            Kind::Copy => "copy",
        }
    }

    /// The lines that match what was typed, best first.
    pub fn items(&self, app: &App) -> Vec<Item> {
        let all = match self.kind {
            Kind::Palette => actions(app),
            Kind::Themes => app
                .themes
                .names()
                .enumerate()
                .map(|(i, n)| {
                    let about = app.themes.broken(i).map(|why| format!("can't be used: {why}"));
                    item(Choice::Theme(i), n.to_owned(), String::new(), about.unwrap_or_default())
                })
                .collect(),
            Kind::Copy => What::ALL
                .iter()
                .map(|w| item(Choice::Copy(*w), w.words().to_owned(), String::new(), ""))
                .collect(),
        };
        if self.query.is_empty() {
            return all;
        }
        let mut matcher = Matcher::new(Config::DEFAULT);
        let pattern = Pattern::parse(&self.query, CaseMatching::Ignore, Normalization::Smart);
        let mut buffer = Vec::new();
        let mut scored: Vec<(u32, Item)> = all
            .into_iter()
            .filter_map(|i| {
                // A hit in the name counts more than one in the words about it.
                let mut score = |t: &str, w| {
                    pattern.score(Utf32Str::new(t, &mut buffer), &mut matcher).map(|s| s * w)
                };
                let (name, doc) = (score(&i.name, 2), score(&i.doc, 1));
                name.max(doc).map(|s| (s, i))
            })
            .collect();
        scored.sort_by_key(|(s, _)| std::cmp::Reverse(*s));
        scored.into_iter().map(|(_, i)| i).collect()
    }
}

fn item(choice: Choice, name: String, key: String, doc: impl Into<Cow<'static, str>>) -> Item {
    Item { choice, name, key, doc: doc.into(), works: true }
}

/// Every action of the main screen, once each.
fn actions(app: &App) -> Vec<Item> {
    let mut out: Vec<Item> = Vec::new();
    for e in TABLE.iter().filter(|e| e.context.is_screen() && e.action != Action::Palette) {
        let own = app.pane.context().is_none_or(|c| e.context == c || e.context == Context::Main);
        let choice = Choice::Do(e.action);
        if let Some(same) = out.iter_mut().find(|i| i.choice == choice) {
            same.works |= own && app.can(e.action);
            continue;
        }
        let works = app.can(e.action);
        out.push(Item { works, ..item(choice, e.name.to_owned(), app.keymap.shown(e), e.doc) });
    }
    out.sort_by_key(|i| !i.works);
    out
}
