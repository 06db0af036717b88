//! A session as judgement needs it: without the tails, so that a copy is cheap. Results are all there, whatever their
//! size: they share their bytes, and what one says may be what decides.

use crate::journal::fold::Tail;
use crate::journal::{Journal, Session};

/// A copy of the journal's session for judging.
pub fn session(journal: &Journal) -> Session {
    journal.read(copy)
}

/// A copy of any session for judging.
#[allow(clippy::field_reassign_with_default)] // its folding state is private to the fold, rightly
pub fn copy(s: &Session) -> Session {
    let generations = s.generations.iter().map(|g| crate::journal::Generation {
        stderr: Tail::default(),
        noise: Tail::default(),
        stopped: g.stopped.clone(),
        transport: g.transport.clone(),
        session_id: g.session_id.clone(),
        ending: g.ending.clone(),
        left: g.left.clone(),
        outlived: g.outlived,
        boot: g.boot.clone(),
        ..*g
    });
    let mut light = Session::default();
    light.generations = generations.collect();
    light.calls = s.calls.clone();
    light.link = s.link.clone();
    light.tools = s.tools.clone();
    light.tools_generation = s.tools_generation;
    light.tools_stale = s.tools_stale;
    light.server = s.server.clone();
    light.protocol = s.protocol.clone();
    light.seq = s.seq;
    light
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::event::Purpose;
    use crate::journal::{Kind, event};

    #[test]
    fn a_large_result_is_judged_like_a_small_one() {
        let journal = Journal::new();
        let transport = event::Transport::Stdio { command: vec!["s".into()], pid: None };
        journal.append(1, Kind::Opened { transport });
        let ask = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":{}}}"#;
        journal.append(1, Kind::Sent { raw: ask.into(), exchange: None, purpose: Purpose::Asked });
        let text = "x".repeat(1 << 20);
        let answer = format!(
            r#"{{"jsonrpc":"2.0","id":1,"result":{{"content":[{{"type":"text","text":"{text}"}}],"structuredContent":{{"status":"running"}}}}}}"#
        );
        journal.append(1, Kind::Received { raw: answer.into(), exchange: None });
        let light = session(&journal);
        let result = light.calls.values().next().unwrap().settled.as_ref().unwrap().result.clone();
        assert!(
            result.is_some_and(|r| r.len() > 1 << 20 && r.ends_with(r#"{"status":"running"}}"#))
        );
    }
}
