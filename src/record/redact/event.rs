//! Redaction of what an event says beside the bytes of a line: command lines, URLs, and words of the server, the
//! system or a person.

use super::{MASK, Rules};
use crate::journal::Note;
use crate::journal::event::{Http, Kind, Transport};
use crate::procs::Left;
use crate::record::entry::What;
use std::borrow::Cow;

impl Rules {
    /// Every text of an event but its bytes; how many values were replaced in prose.
    pub(super) fn strings(&self, what: &mut What) -> u32 {
        match what {
            What::Event(kind) => self.kind(kind),
            What::Gap { why, .. } => self.say(why),
            What::Part { .. } | What::StdinClosed => 0,
        }
    }

    fn kind(&self, kind: &mut Kind) -> u32 {
        match kind {
            Kind::Opened { transport: Transport::Stdio { command, .. } } => {
                *command = self.argv(command);
                0
            }
            Kind::Opened { transport: Transport::Http { url } } => {
                *url = self.url(url);
                0
            }
            Kind::Http { what, .. } => self.http(what),
            Kind::NotWritten { why: text, .. }
            | Kind::State { why: text, .. }
            | Kind::Agreed { protocol: text } => self.say(text),
            Kind::Note(note) => match note {
                Note::LeftOpen { why: text, .. }
                | Note::NoAnswer { why: text, .. }
                | Note::Ending { why: text }
                | Note::Remark { text, .. }
                | Note::Text(text) => self.say(text),
                Note::Stopped { who: Some(p) } => self.say(&mut p.name),
                Note::Outlived { left: Left::These(all), .. } => {
                    all.iter_mut().map(|p| self.say(&mut p.name)).sum()
                }
                Note::Outlived { .. }
                | Note::TimedOut { .. }
                | Note::Cancelled { .. }
                | Note::StoppedWaiting { .. }
                | Note::Limit { .. }
                | Note::Stopped { who: None }
                | Note::Stdin { .. } => 0,
            },
            Kind::Sent { .. }
            | Kind::Received { .. }
            | Kind::Noise { .. }
            | Kind::Stderr { .. }
            | Kind::StdoutClosed
            | Kind::Exit { .. }
            | Kind::AllGone => 0,
        }
    }

    fn http(&self, what: &mut Http) -> u32 {
        match what {
            Http::Request { url, method } => {
                *url = self.url(url);
                self.say(method)
            }
            Http::Redirected { to, .. }
            | Http::Through { proxy: to }
            | Http::Endpoint { url: to } => {
                *to = self.url(to);
                0
            }
            Http::Status { session, location, content_type, www_authenticate, .. } => {
                if let Some(l) = location {
                    *l = self.url(l);
                }
                // A tap has given it a name already.
                if let Some(s) = session.as_mut().filter(|s| !is_name(s)) {
                    *s = MASK.into();
                }
                let said = [content_type, www_authenticate];
                said.into_iter().flatten().map(|t| self.say(t)).sum()
            }
            Http::Resuming { last_event_id: text, .. }
            | Http::Failed { why: text, .. }
            | Http::Unreadable { why: text } => self.say(text),
            Http::Body { .. } | Http::Partial { .. } | Http::Flow { .. } | Http::End => 0,
        }
    }

    /// Words, as prose and by known values.
    fn say(&self, text: &mut String) -> u32 {
        let (new, n) = self.prose(text.as_bytes());
        let new = match new {
            Cow::Owned(new) => String::from_utf8_lossy(&new).into_owned(),
            Cow::Borrowed(_) => return n,
        };
        *text = new;
        n
    }
}

/// A name that a tap gave a session id, or the mask.
pub(super) fn is_name(value: &str) -> bool {
    value == MASK
        || value.strip_prefix("session-").is_some_and(|n| n.bytes().all(|b| b.is_ascii_digit()))
}
