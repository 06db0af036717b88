//! Texts to take along or to look into: what the copy list offers, and results and answers as trees. Whatever is copied
//! is kept in a file too, since no terminal says whether it took it.

use super::Hands;
use crate::client::Endpoint;
use crate::inspect::recorded::RECORDED_CALLS;
use crate::inspect::request::Request;
use crate::journal::event::Kind;
use crate::journal::{Call, CallId};
use crate::json::raw;
use crate::shell;
use crate::time::Time;
use crate::tui::msg::Msg;
use crate::tui::pick::What;
use crate::tui::tree::Document;
use crate::words::next_step;
use std::io::Write;
use std::sync::Arc;

/// The texts of a request, or of one call, most wanted first.
pub async fn documents(hands: &Hands, id: &str, call: Option<CallId>) -> Vec<Arc<Document>> {
    let mut texts: Vec<(String, String)> = Vec::new();
    if let Some(call) = call.and_then(|c| call_of(hands, c)) {
        of_call(&call, &mut texts);
    } else {
        let request = hands.inspector.request(id, None).await;
        if let Some(result) = &request.line.row.result {
            texts.push((format!("result of {id}, as the ledger has it"), result.clone()));
        }
        for e in &request.line.row.effects {
            let columns = e.columns.iter().map(|(k, v)| format!("{}:{v}", raw::quote(k)));
            let columns: Vec<String> = columns.collect();
            texts.push((format!("effect {}", e.key), format!("{{{}}}", columns.join(","))));
        }
        if let Some(call) = newest_call(hands, id) {
            of_call(&call, &mut texts);
        }
    }
    // Indexing a large text is work for a thread that may block.
    let index = move || {
        texts.into_iter().map(|(title, text)| Arc::new(Document::new(title, text))).collect()
    };
    tokio::task::spawn_blocking(index).await.unwrap_or_default()
}

fn of_call(call: &Call, texts: &mut Vec<(String, String)>) {
    let name = format!("{} of {}", call.tool, call.sent_at.clock());
    if let Some(s) = &call.settled {
        if let Some(result) = &s.result {
            if let Some(object) = crate::journal::call::answer_object(result) {
                texts.push((format!("what {name} said"), object));
            }
            texts.push((format!("answer to {name}"), result.to_string()));
        }
        if let Some(error) = &s.error {
            texts.push((format!("error of {name}"), error.clone()));
        }
    }
    if let Some(args) = &call.args {
        texts.push((format!("arguments of {name}"), args.clone()));
    }
}

fn call_of(hands: &Hands, id: CallId) -> Option<Call> {
    if let Some(recorded) = id.checked_sub(RECORDED_CALLS) {
        let recording = hands.inspector.recording.as_ref()?;
        return recording.shown(|r, _| r.session.calls.get(&recorded).cloned());
    }
    let client = hands.inspector.client.as_ref()?;
    client.journal().read(|s| s.calls.get(&id).cloned())
}

/// The newest call for a request: one that does the work before a look-up.
fn newest_call(hands: &Hands, id: &str) -> Option<Call> {
    let client = hands.inspector.client.as_ref()?;
    let look_up = &hands.inspector.look_up;
    client.journal().read(|s| {
        let mut of: Vec<&Call> =
            s.calls.values().filter(|c| c.request_id.as_deref() == Some(id)).collect();
        of.sort_by_key(|c| (c.tool != *look_up, c.id));
        of.last().map(|c| (*c).clone())
    })
}

/// The text for the clipboard.
///
/// # Errors
/// In words, when there is no such thing for this request.
pub async fn copy(hands: &Hands, what: What, id: &str) -> Result<String, String> {
    match what {
        What::RequestId => Ok(id.to_owned()),
        What::Row => {
            let request = hands.inspector.request(id, None).await;
            Ok(row(&request))
        }
        What::Command => command(hands, id),
        What::Frame => frames(hands, id),
        What::Curl => curl(hands, id),
    }
}

/// The row with what is judged of it.
fn row(request: &Request) -> String {
    let l = &request.line;
    let r = &l.row;
    let text = |t: Option<&str>| t.map_or("null".to_owned(), raw::quote);
    let effects: Vec<String> = r.effects.iter().map(|e| raw::quote(&e.key)).collect();
    let verdicts: Vec<String> = l.verdict_words().iter().map(|v| raw::quote(v)).collect();
    let claimed = r.claimed_at.map(Time::rfc3339);
    let result = r.result.as_deref().map_or("null".to_owned(), |t| {
        let whole =
            raw::members(t).is_some() && serde_json::from_str::<serde::de::IgnoredAny>(t).is_ok();
        if whole { t.to_owned() } else { raw::quote(t) }
    });
    format!(
        "{{\"request_id\":{},\"status\":{},\"state\":{},\"verdicts\":[{}],\"owner\":{},\"claimed_at\":{},\"args_hash\":{},\"effects\":[{}],\"next\":{},\"result\":{result}}}",
        raw::quote(&r.request_id),
        if r.rowid == 0 { "null".to_owned() } else { raw::quote(&r.status) },
        raw::quote(l.judged.state.word()),
        verdicts.join(","),
        text(r.owner.as_deref()),
        text(claimed.as_deref()),
        text(r.args_hash.as_deref()),
        effects.join(","),
        raw::quote(&next_step(&l.finding.next, Time::now())),
    )
}

/// The command that would repeat it without the screen. It asks as the screen does: nobody's yes stands in it.
fn command(hands: &Hands, id: &str) -> Result<String, String> {
    let Some(client) = &hands.inspector.client else {
        return Err("no endpoint is attached: there is nothing to repeat it at".into());
    };
    let mut words = Vec::new();
    // What this run has sent or seen; else the command looks for the arguments itself.
    let call = newest_call(hands, id).filter(|c| c.tool != hands.inspector.look_up);
    if let Some((tool, args)) = call.and_then(|c| Some((c.tool, c.args?))) {
        words.extend(["--tool".to_owned(), tool, "--args".to_owned(), args]);
    }
    words.extend(hands.flags.iter().cloned());
    match client.endpoint() {
        Endpoint::Http { url, headers } => {
            words.extend(["--http".to_owned(), url.clone()]);
            for (name, _) in headers {
                words.extend(["--header".to_owned(), format!("{name}: …")]);
            }
        }
        Endpoint::Stdio { command, .. } => {
            words.push("--".to_owned());
            words.extend(command.iter().cloned());
        }
    }
    let words: Vec<String> = words.iter().map(|w| shell::word(w)).collect();
    Ok(format!("redial reissue {} {}", shell::id(id), words.join(" ")))
}

/// The frames of its newest call as they were on the wire: the call, then its answer.
fn frames(hands: &Hands, id: &str) -> Result<String, String> {
    let none = || format!("no call of {id} was sent from here");
    let call = newest_call(hands, id).ok_or_else(none)?;
    let client = hands.inspector.client.as_ref().ok_or_else(none)?;
    let (events, _) = client.journal().events_from(call.id);
    let mut out: Vec<String> = Vec::new();
    for e in events.iter().filter(|e| e.generation == call.generation) {
        match &e.kind {
            Kind::Sent { raw, .. } if e.seq == call.id => {
                out.push(String::from_utf8_lossy(raw).trim_end().to_owned());
            }
            Kind::Received { raw, .. } if is_answer(raw, &call) => {
                out.push(String::from_utf8_lossy(raw).trim_end().to_owned());
            }
            _ => {}
        }
    }
    if out.is_empty() {
        return Err("its frames are no longer kept".into());
    }
    Ok(out.join("\n"))
}

fn is_answer(frame: &[u8], call: &Call) -> bool {
    let text = String::from_utf8_lossy(frame);
    let id = raw::get(&text, "id");
    raw::get(&text, "method").is_none() && id.is_some_and(|id| id.trim() == call.rpc_id.to_string())
}

/// The newest call's frame as a curl command. Secrets are left out.
fn curl(hands: &Hands, id: &str) -> Result<String, String> {
    let client = hands.inspector.client.as_ref();
    let Some(Endpoint::Http { url, headers }) = client.map(|c| c.endpoint()) else {
        return Err("the endpoint isn't reached over HTTP".into());
    };
    let frames = frames(hands, id)?;
    let frame = frames.lines().next().unwrap_or_default();
    let session = client.and_then(|c| {
        c.journal()
            .read(|s| (s.generation().and_then(|g| g.session_id.clone()), s.protocol.clone()))
            .into()
    });
    let mut words = vec![
        "curl".to_owned(),
        "-sS".to_owned(),
        "-H".to_owned(),
        "Content-Type: application/json".to_owned(),
        "-H".to_owned(),
        "Accept: application/json, text/event-stream".to_owned(),
    ];
    if let Some((session, protocol)) = session {
        for (name, value) in [("Mcp-Session-Id", session), ("MCP-Protocol-Version", protocol)] {
            if let Some(value) = value {
                words.extend(["-H".to_owned(), format!("{name}: {value}")]);
            }
        }
    }
    for (name, _) in headers {
        words.extend(["-H".to_owned(), format!("{name}: …")]);
    }
    words.extend(["--data-binary".to_owned(), frame.to_owned(), url.clone()]);
    Ok(words.iter().map(|w| shell::word(w)).collect::<Vec<_>>().join(" "))
}

/// The message for the screen, with the text kept in a file of the user's state folder, readable by nobody else.
pub fn kept(what: String, text: Result<String, String>) -> Msg {
    let write = |text: &str| -> Option<String> {
        let file = crate::config::state_folder()?.join("copied.txt");
        std::fs::create_dir_all(file.parent()?).ok()?;
        // A temporary file is made for its owner alone.
        let mut new = tempfile::NamedTempFile::new_in(file.parent()?).ok()?;
        new.write_all(text.as_bytes()).ok()?;
        new.persist(&file).ok()?;
        Some(file.display().to_string())
    };
    let kept = text.as_ref().ok().and_then(|t| write(t));
    Msg::Copied { what, text, kept }
}
