//! The findings of the audit on the attached recording: what is shown and selected, and what keys do there. Pure; the
//! findings come from whoever reads the file, again as it grows.

use super::app::{App, Overlay, Tone};
use super::msg::Effect;
use super::{timeline, update};
use crate::audit::{Finding, Severity};
use crate::keys::action::Action;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What the audit says so far.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Audited {
    /// In the order of the trace.
    pub findings: Vec<Finding>,
    /// How many there are, those that are only counted too.
    pub total: u64,
    /// Calls.
    pub calls: u64,
    /// `create_basket → basket_id`
    pub makes: String,
    /// `add_item ← basket_id`
    pub uses: String,
    /// Where the contracts are; `None`: inferred.
    pub contracts: Option<String>,
    /// How grave the gravest finding of an event is, by its number.
    pub marks: BTreeMap<u64, Severity>,
    /// Not all of the file has been read yet.
    pub reading: bool,
    /// Why it can't be audited, or not by its contracts.
    pub trouble: Option<String>,
}

/// See the module's head.
#[derive(Debug, Default)]
pub struct Findings {
    pub news: Option<Arc<Audited>>,
    /// The selected one.
    pub at: usize,
    asked: bool,
}

impl Findings {
    /// The selected finding.
    pub fn selected(&self) -> Option<&Finding> {
        self.news.as_ref()?.findings.get(self.at)
    }

    /// The mark of an event of the recording.
    pub fn mark(&self, seq: u64) -> Option<Severity> {
        self.news.as_ref()?.marks.get(&seq).copied()
    }

    /// How many there are.
    pub fn total(&self) -> u64 {
        self.news.as_ref().map_or(0, |n| n.total)
    }
}

/// Lets the recording be audited from now on, when there is one.
pub fn ask(app: &mut App, out: &mut Vec<Effect>) {
    if app.start.recording.is_some() && !app.findings.asked {
        app.findings.asked = true;
        out.push(Effect::Audit);
    }
}

/// Opens the list.
pub fn open(app: &mut App, out: &mut Vec<Effect>) {
    ask(app, out);
    app.overlay = Some(Overlay::Findings);
}

/// News has come; the selection stays on its finding.
pub fn take(app: &mut App, news: Arc<Audited>) {
    let f = &mut app.findings;
    let was = f.selected().cloned();
    let same = |was: &Finding| {
        news.findings
            .iter()
            .position(|n| (n.kind, n.line, n.call) == (was.kind, was.line, was.call))
    };
    f.at = was.as_ref().and_then(same).unwrap_or(f.at).min(news.findings.len().saturating_sub(1));
    f.news = Some(news);
}

/// Takes an action of the list.
pub fn act(app: &mut App, action: Action, out: &mut Vec<Effect>) {
    app.said = None;
    let page = usize::from(app.size.1 / 3).max(1);
    let f = &mut app.findings;
    let last = f.news.as_ref().map_or(0, |n| n.findings.len()).saturating_sub(1);
    match action {
        Action::Up => f.at = f.at.saturating_sub(1),
        Action::Down => f.at = (f.at + 1).min(last),
        Action::PageUp => f.at = f.at.saturating_sub(page),
        Action::PageDown => f.at = (f.at + page).min(last),
        Action::Top => f.at = 0,
        Action::Bottom => f.at = last,
        Action::Details => match f.selected().map(|f| f.seq) {
            Some(seq) if seq > 0 => timeline::open_at(app, seq, out),
            Some(_) => {
                app.said = Some((Tone::Plain, "this finding has no frame of its own".into()))
            }
            None => {}
        },
        Action::Close => app.overlay = None,
        Action::Quit => update::quit(app, out),
        _ => {}
    }
}

/// A click on a line: selects it; on the selected one, goes to its frame.
pub fn click(app: &mut App, line: usize, out: &mut Vec<Effect>) {
    if app.findings.at == line {
        act(app, Action::Details, out);
    } else {
        app.findings.at = line;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::Kind;
    use crate::keys::Key;
    use crate::time::Time;
    use crate::tui::app::Start;
    use crate::tui::msg::Msg;
    use crate::tui::timeline::Goto;

    fn app(recording: bool) -> App {
        let recording = recording.then(|| "r.jsonl".to_owned());
        App::new(Start { recording, ..Start::default() }, Time(0), (100, 30))
    }

    fn press(app: &mut App, key: &str) -> Vec<Effect> {
        let key = Key::parse(key).unwrap();
        update::update(app, Msg::Key { key, repeat: false })
    }

    fn news(seqs: &[u64]) -> Msg {
        let finding = |seq: &u64| {
            let mut f = Finding::new(Kind::LostHandle, "lost");
            (f.seq, f.line, f.call) = (*seq, *seq, Some(*seq));
            f
        };
        let findings: Vec<Finding> = seqs.iter().map(finding).collect();
        let marks = seqs.iter().map(|s| (*s, Severity::Error)).collect();
        Msg::Audited(Arc::new(Audited {
            total: findings.len() as u64,
            findings,
            marks,
            ..Audited::default()
        }))
    }

    #[test]
    fn the_list_is_asked_for_once_and_leads_to_frames() {
        let mut a = app(true);
        assert_eq!(press(&mut a, "A"), [Effect::Audit]);
        assert!(matches!(a.overlay, Some(Overlay::Findings)));
        update::update(&mut a, news(&[4, 9]));
        press(&mut a, "j");
        // What is new before it doesn't move the selection.
        update::update(&mut a, news(&[4, 7, 9]));
        assert_eq!(a.findings.selected().unwrap().seq, 9);
        assert_eq!((a.findings.mark(7), a.findings.mark(8)), (Some(Severity::Error), None));
        let out = press(&mut a, "enter");
        assert!(matches!(a.overlay, Some(Overlay::Timeline)));
        assert!(
            matches!(&out[..], [Effect::Timeline(Some(ask))] if ask.goto == Goto::Event(9)),
            "{out:?}"
        );
        // Back from the frame to its finding.
        press(&mut a, "A");
        assert!(matches!(a.overlay, Some(Overlay::Findings)));
        assert_eq!(press(&mut a, "esc"), []);
        assert!(a.overlay.is_none());
    }

    #[test]
    fn without_a_recording_it_says_why_not() {
        let mut a = app(false);
        assert_eq!(press(&mut a, "A"), []);
        assert!(a.said.unwrap().1.contains("no recording"));
    }
}
