//! What a pending call waits for, in words, from journal facts alone. Pure: the caller says what time it is.

use super::call::Call;
use super::event::LinkState;
use super::fold::Session;
use super::generation::{Generation, Mute, stopped_words};
use super::live::{Progress, Task};
use super::refusal::first_line;
use super::settle;
use crate::time::{Time, span};
use std::fmt;

/// After this many seconds an agent may have moved a call to the background (Claude Code does since 2.1.212).
const BACKGROUND_S: f64 = 120.0;

/// Of a call that waits in a full pipe.
pub(super) const UNREAD: &str = "the server does not read its stdin, which is full";

/// The words for one call.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Waiting {
    /// What is missing, most telling first. May hold foreign text.
    pub clauses: Vec<String>,
    /// How far it is, 0 to 100, when the server says so: a bar.
    pub percent: Option<f64>,
}

impl fmt::Display for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.clauses.join(" · "))
    }
}

/// What `call` waits for at `now`; nothing once it is settled.
pub fn waiting(call: &Call, session: &Session, now: Time) -> Waiting {
    let mute = session.generation_n(call.generation).map(Generation::mute);
    waiting_on(call, &mute.unwrap_or_default(), now)
}

/// The same from a copy of the call; `mute`: why its server can't say anything.
pub fn waiting_on(call: &Call, mute: &Mute, now: Time) -> Waiting {
    if !call.is_pending() {
        return Waiting::default();
    }
    let live = &call.live;
    let since = |at: Time| span(at.age_at(now).max(0.0));
    let mut clauses = Vec::new();
    if let Mute::Stopped(who) = mute {
        clauses.push(stopped_words(who));
    }
    if let Some(task) = &live.task {
        clauses.push(task_words(task, now));
    } else if let Some(wants) = &live.wants {
        clauses.push(format!("the server wants {}", settle::wanted(wants)));
    } else if call.exchange.is_some() {
        clauses.push(http_words(call, now));
        if let Some(at) = live.keepalive_at {
            clauses.push(format!("last keep-alive {} ago", since(at)));
        }
    } else {
        clauses.push(match mute {
            Mute::Closed => "sent; the server has closed its stdout".into(),
            _ if live.queued => {
                let since = since(call.sent_at);
                format!("not sent yet: queued here for {since}, behind another message; {UNREAD}")
            }
            _ if live.unread => {
                format!("sent {} ago; {UNREAD}", since(call.sent_at))
            }
            _ => format!("sent {} ago; nothing has come back", since(call.sent_at)),
        });
    }
    if let Some(p) = &live.progress {
        clauses.push(progress_words(p, now));
    }
    if let Some(remark) = &live.remark {
        clauses.push(remark.clone());
    }
    if let Some(disowned) = &live.disowned {
        clauses.push(disowned.to_string());
    }
    if let Some(limit) = live.limit_s.filter(|l| l.is_finite()) {
        let from = match &live.progress {
            Some(p) if live.limit_extends => p.at,
            _ => call.sent_at,
        };
        let left = span((limit - from.age_at(now)).max(0.0));
        let moved = if live.limit_extends { ", progress moves it" } else { "" };
        clauses.push(format!("call limit {} in {left}{moved}", span(limit)));
    }
    if call.sent_at.age_at(now) > BACKGROUND_S {
        clauses.push("an agent may have moved it to the background; not lost".into());
    }
    Waiting { clauses, percent: live.progress.as_ref().and_then(Progress::percent) }
}

/// What a link that is not ready waits for at `now`: how long it starts already, and the child's newest stderr line.
/// `None` when it is not connecting.
pub fn starting(session: &Session, now: Time) -> Option<String> {
    let link = session.link.as_ref().filter(|l| l.state == LinkState::Connecting)?;
    let g = session.generation();
    if let Some(who) = g.and_then(|g| g.stopped.as_ref()) {
        let since = span(link.since.age_at(now).max(0.0));
        return Some(format!("{} · {} · for {since}", stopped_words(who), link.why));
    }
    let line = g.and_then(|g| g.stderr.last(1).pop());
    let line = line.map(|l| format!(" · newest stderr line: {}", first_line(&l)));
    let since = span(link.since.age_at(now).max(0.0));
    Some(format!("{} · for {since}{}", link.why, line.unwrap_or_default()))
}

fn http_words(call: &Call, now: Time) -> String {
    let live = &call.live;
    let since = |at: Time| span(at.age_at(now).max(0.0));
    if let Some(at) = live.resumes_at {
        let wait = span(now.age_at(at).max(0.0));
        return format!("the stream ended early; the rest is asked for in {wait}");
    }
    match (live.headers_at, live.bytes, live.bytes_at) {
        (None, ..) => format!("no headers yet, sent {} ago", since(call.sent_at)),
        (Some(at), 0, _) if live.stream => format!("stream open, 0 bytes for {}", since(at)),
        (Some(at), 0, _) => format!("headers came {} ago, 0 bytes of the answer", since(at)),
        (Some(_), n, Some(at)) => {
            let what = if live.stream { "stream open" } else { "the answer is coming" };
            format!("{what}, {n} bytes, the last {} ago", since(at))
        }
        (Some(at), n, None) => format!("stream open for {}, {n} bytes", since(at)),
    }
}

fn progress_words(p: &Progress, now: Time) -> String {
    let how_far = match (p.percent(), p.total) {
        (Some(percent), Some(total)) => format!("{percent:.0} % ({} of {total})", p.done),
        _ => format!("{}", p.done),
    };
    let said = p.message.as_deref().map(|m| format!(": {}", first_line(m))).unwrap_or_default();
    format!("progress {how_far}, {} ago{said}", span(p.at.age_at(now).max(0.0)))
}

fn task_words(t: &Task, now: Time) -> String {
    let said = t.message.as_deref().map(|m| format!(": {}", first_line(m))).unwrap_or_default();
    let heard = span(t.at.age_at(now).max(0.0));
    format!("task {}: {}, heard of {heard} ago{said}", t.id, t.status)
}

#[cfg(test)]
mod tests {
    use super::super::event::{Http, Kind, Note};
    use super::super::fold::Session;
    use super::super::testing::Tape;
    use super::*;

    fn words(s: &Session, now: f64) -> String {
        let call = s.calls.values().next().unwrap();
        waiting(call, s, Time(0).plus_seconds(now)).to_string()
    }

    #[test]
    fn each_kind_of_silence_has_its_own_words() {
        let mut t = Tape::over_http();
        let call = t.call(1.0, Some(9));
        t.at(1.0, Kind::Note(Note::Limit { call, limit_s: 60.0, extends: false }));
        assert_eq!(
            words(&t.session, 13.0),
            "no headers yet, sent 12 s ago · call limit 1 m 00 s in 48 s"
        );
        t.http(2.0, 9, t.stream_headers());
        assert!(words(&t.session, 43.0).starts_with("stream open, 0 bytes for 41 s · call limit"));
        t.http(44.0, 9, Http::Flow { bytes: 13, keepalives: 1 });
        let w = words(&t.session, 47.0);
        assert!(w.contains("13 bytes") && w.contains("last keep-alive 3.0 s ago"), "{w}");
        let progress = r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":7,"progress":2,"total":5,"message":"half\nway"}}"#;
        t.received(48.0, progress, Some(9));
        let w = words(&t.session, 50.0);
        assert!(w.contains("progress 40 % (2 of 5), 2.0 s ago: half"), "{w}");
        assert!(words(&t.session, 130.0).contains("moved it to the background; not lost"));
    }

    #[test]
    fn progress_moves_the_limit_only_when_asked_and_a_settled_call_waits_for_nothing() {
        for (extends, left) in [(false, "in 10 s"), (true, "in 55 s, progress moves it")] {
            let mut t = Tape::over_stdio();
            let call = t.call(0.0, None);
            t.at(0.0, Kind::Note(Note::Limit { call, limit_s: 60.0, extends }));
            t.received(45.0, r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":7,"progress":1}}"#, None);
            assert!(words(&t.session, 50.0).ends_with(left), "{}", words(&t.session, 50.0));
        }
        let mut t = Tape::over_stdio();
        let call = t.call(0.0, None);
        assert!(words(&t.session, 41.0).starts_with("sent 41 s ago; nothing has come back"));
        t.at(2.0, Kind::Note(Note::Stdin { from: call, full: true }));
        assert!(
            words(&t.session, 41.0)
                .starts_with("sent 41 s ago; the server does not read its stdin")
        );
        t.at(3.0, Kind::Note(Note::Stdin { from: call, full: false }));
        assert!(words(&t.session, 41.0).starts_with("sent 41 s ago; nothing has come back"));
        // What stands behind the frame that fills the pipe has not left at all.
        let behind = r#"{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":"t"}}"#;
        t.at(3.0, Kind::Note(Note::Stdin { from: call, full: true }));
        let second = t.sent(3.0, behind, None, super::super::event::Purpose::Asked);
        let now = Time(0).plus_seconds(10.0);
        let w = waiting(&t.session.calls[&second], &t.session, now).to_string();
        assert!(w.starts_with("not sent yet: queued here for 7.0 s, behind"), "{w}");
        let who = crate::procs::Process { pid: 4711, name: "s.py".into() };
        t.at(31.0, Kind::Note(Note::Stopped { who: Some(who) }));
        assert!(
            words(&t.session, 41.0).starts_with(
                r#"the server is stopped: pid 4711, "s.py", by a signal; kill -CONT 4711 lets it go on · sent 41 s ago"#
            ),
            "{}",
            words(&t.session, 41.0)
        );
        t.at(32.0, Kind::Note(Note::Stopped { who: None }));
        assert!(words(&t.session, 41.0).starts_with("sent 41 s ago"));
        t.at(40.0, Kind::State { state: LinkState::Connecting, why: "starting: npx x".into() });
        t.at(40.0, Kind::Stderr { raw: "fetching 3 MB".into() });
        let said = starting(&t.session, Time(0).plus_seconds(41.0)).unwrap();
        assert_eq!(said, "starting: npx x · for 1.0 s · newest stderr line: fetching 3 MB");
        t.at(41.0, Kind::Exit { code: Some(1), signal: None, left: crate::procs::Left::Nobody });
        assert_eq!(words(&t.session, 42.0), "");
    }
}
