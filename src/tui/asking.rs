//! The questions of the screen and their answers: what the question is that stands now, and what decides it. The rule
//! by which a key is an answer is `answer`'s.

use super::answer::Worth;
use super::app::{App, Overlay, Tone};
use super::data::Question;
use crate::keys::Key;
use crate::keys::action::{Action, Context};
use std::hash::{DefaultHasher, Hash, Hasher};

impl App {
    /// The question that can be answered: none where not all of it has been on the screen.
    pub fn standing(&self) -> Option<u64> {
        if self.is_too_small() || self.cut { None } else { self.asked() }
    }

    /// The question that stands, as a fingerprint of all that is asked: another one when anything of it changes. None
    /// where nothing is asked.
    pub fn asked(&self) -> Option<u64> {
        let words = match self.overlay.as_ref()? {
            Overlay::Reissue(d) => {
                let r = d.review()?;
                let (args, editing) = (r.args_text(), r.editing);
                // The facts and not the words about them: an age in those changes with every look.
                let check = r.check.as_ref().map(|c| (&c.terms, c.gate.question, &c.gate.word));
                let (id, tool, changes) = (&d.request_id, &r.plan.tool, &r.changes);
                format!("{id} {editing} {args} {tool} {changes:?} {check:?}")
            }
            Overlay::Cancel(call) => format!("cancel {call:?}"),
            Overlay::Form => format!("form {}", self.questions.first()?.id),
            Overlay::Quit => {
                let pending = self.wire.iter().flat_map(|w| w.pending()).filter(|c| !c.is_agents());
                let pending: Vec<_> = pending.map(|c| c.id).collect();
                let mut sending: Vec<_> = self.sending.iter().collect();
                sending.sort_unstable();
                format!("quit {pending:?} {sending:?} {}", self.perhaps_going_on().len())
            }
            _ => return None,
        };
        let mut hash = DefaultHasher::new();
        words.hash(&mut hash);
        Some(hash.finish())
    }
}

/// What an action is worth that was asked for just now, by a key or a click. None: it decides nothing.
pub(super) fn worth(
    app: &App,
    context: Context,
    action: Action,
    key: Option<Key>,
) -> Option<Worth> {
    use Action as A;
    let question = app.standing();
    let after = |met: bool| if met { Worth::Answer } else { Worth::Nothing };
    Some(match (context, action) {
        // The typing was the proof; its Enter needs no silence.
        (Context::Reissue, A::Send) if app.question() == Some(Question::Type) => {
            after(app.answering.readable(question))
        }
        (Context::Reissue, A::Send | A::Agree)
        | (Context::Form, A::Accept | A::Decline)
        | (Context::Cancel, A::Cancel | A::StopWaiting)
        | (Context::Quit, A::QuitNow) => app.answering.worth(question, key),
        // What acts at once: a held key would do it again and again.
        (c, A::Reconnect | A::StopWaiting) if c.is_screen() => after(app.answering.after_silence()),
        _ => return None,
    })
}

/// Says why nothing happened: silence looks like a hang.
pub(super) fn too_early(app: &mut App) {
    let why = if app.cut {
        "not all of the question has been on the screen; until then nothing is decided"
    } else {
        "that came too early, or right behind another key; it decides nothing: press it once more"
    };
    app.said = Some((Tone::Plain, why.into()));
}
