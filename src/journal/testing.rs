//! A tape to fold in the tests of the journal: events at given seconds, one call with the JSON-RPC id 7.

use super::call::{Call, CallId};
use super::event::{Event, Http, Kind, Purpose, Transport};
use super::fold::Session;
use crate::time::Time;
use bytes::Bytes;

pub(super) struct Tape {
    pub session: Session,
    seq: u64,
}

impl Tape {
    pub fn over_stdio() -> Tape {
        Tape::open(Transport::Stdio { command: vec!["server".into()], pid: Some(1) })
    }

    pub fn over_http() -> Tape {
        Tape::open(Transport::Http { url: "http://x/mcp".into() })
    }

    fn open(transport: Transport) -> Tape {
        let mut t = Tape { session: Session::default(), seq: 0 };
        t.at(0.0, Kind::Opened { transport });
        t
    }

    pub fn at(&mut self, at: f64, kind: Kind) -> u64 {
        self.seq += 1;
        let at = Time(0).plus_seconds(at);
        self.session.apply(&Event { seq: self.seq, at, mono_us: 0, generation: 1, kind });
        self.seq
    }

    /// The one call of the tape.
    pub fn call(&mut self, at: f64, exchange: Option<u64>) -> CallId {
        let frame = r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"create_ticket","arguments":{"request_id":"r-1"}}}"#;
        self.sent(at, frame, exchange, Purpose::Asked)
    }

    pub fn sent(&mut self, at: f64, frame: &str, exchange: Option<u64>, purpose: Purpose) -> u64 {
        self.at(at, Kind::Sent { raw: Bytes::from(frame.to_owned()), exchange, purpose })
    }

    pub fn received(&mut self, at: f64, frame: &str, exchange: Option<u64>) {
        self.at(at, Kind::Received { raw: Bytes::from(frame.to_owned()), exchange });
    }

    pub fn http(&mut self, at: f64, exchange: u64, what: Http) {
        self.at(at, Kind::Http { exchange, what });
    }

    pub fn status(&self, status: u16, content_type: &str) -> Http {
        Http::Status {
            status,
            content_type: Some(content_type.into()),
            session: None,
            www_authenticate: None,
            location: None,
        }
    }

    /// The server gave a session id.
    pub fn in_session(&mut self) {
        let session = Some("s-1".to_owned());
        let Http::Status { content_type, .. } = self.status(200, "application/json") else {
            return;
        };
        let (www_authenticate, location) = (None, None);
        let what = Http::Status { status: 200, content_type, session, www_authenticate, location };
        self.http(0.5, 1, what);
    }

    pub fn stream_headers(&self) -> Http {
        self.status(200, "text/event-stream; charset=utf-8")
    }

    pub fn noise(&mut self, at: f64, line: &str) {
        self.at(at, Kind::Noise { raw: Bytes::from(line.to_owned()), cut: 0 });
    }

    /// The first call as it stands.
    pub fn it(&self) -> &Call {
        self.session.calls.values().next().unwrap()
    }

    /// Outcome word, `late`, and the reason.
    pub fn said(&self) -> (&'static str, bool, String) {
        let s = self.it().settled.as_ref();
        (self.it().word(), s.is_some_and(|s| s.late), s.map(|s| s.why.clone()).unwrap_or_default())
    }

    pub fn notes(&self) -> String {
        let notes: Vec<&str> = self.session.notes.iter().map(|(_, n)| n.as_str()).collect();
        notes.join("\n")
    }
}
