//! What an `ok` answer says of the *request* (design: "answer status"). Only words of a list mean done, and only where
//! nothing in the answer speaks against them; what is not said stays unsaid.

use super::call::{AnswerStatus, answer_texts, unwrapped};
use super::deeper;
use super::live::Task;
use super::refusal::short;
use crate::json::raw::{self, Object};
use crate::time::Time;

/// The words that mean done. Any other one may be that of the thing made (a ticket that is "open").
const DONE: [&str; 6] = ["done", "completed", "succeeded", "success", "ok", "finished"];

/// The words of work that goes on.
const GOES_ON: [&str; 16] = [
    "in_progress",
    "inprogress",
    "running",
    "pending",
    "processing",
    "working",
    "queued",
    "started",
    "waiting",
    "accepted",
    "submitted",
    "scheduled",
    "retrying",
    "input_required",
    "created",
    "deferred",
];

/// The words of an end without the work, or of nothing known.
const FAILED: [&str; 14] = [
    "unknown",
    "abandoned",
    "outcome_unknown",
    "failed",
    "failure",
    "error",
    "expired",
    "cancelled",
    "canceled",
    "aborted",
    "rejected",
    "timeout",
    "timed_out",
    "not_found",
];

/// Characters of a value that is named.
const MEMBER: usize = 80;

/// What an `ok` result says of the request. `legacy`: it answers a call of a revision before 2026-07-28, where
/// `resultType` is a member like any other.
pub fn answer_status(result: &str, legacy: bool) -> AnswerStatus {
    status_in(result, &Object::read(result), legacy)
}

/// Whether the answer says that the work goes on, or failed, or that nothing is known of it; a word of the thing made
/// (a basket that is "open") says none of these.
pub fn unfinished(result: &str, legacy: bool) -> bool {
    match said_in(result, &Object::read(result), legacy) {
        Err(status) => status != AnswerStatus::Done,
        Ok(said) => said.failed || said.goes_on,
    }
}

/// What of an answer speaks against it that the work is done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Against {
    /// It stands in the structured part, and not in a text.
    pub structured: bool,
    /// `ok: false`. Foreign text.
    pub member: String,
}

impl Against {
    /// Where it stands and what it says.
    pub fn words(&self) -> String {
        let part = if self.structured { "its structured part" } else { "it" };
        format!("{part} says {}", self.member)
    }
}

/// The first member that speaks against it that the work is done, whatever a text beside it says.
pub fn against(result: &str, legacy: bool) -> Option<Against> {
    said_in(result, &Object::read(result), legacy).ok()?.against
}

/// The same as [`answer_status`], of a result whose members are read already.
pub(super) fn status_in(text: &str, result: &Object<'_>, legacy: bool) -> AnswerStatus {
    said_in(text, result, legacy).map_or_else(|status| status, |said| said.sum())
}

/// What its parts say; an error is what the result's own form says already.
fn said_in(text: &str, result: &Object<'_>, legacy: bool) -> Result<Said, AnswerStatus> {
    if Task::of_result(text, result, Time(0), legacy).is_some() {
        return Err(AnswerStatus::InProgress);
    }
    match result.get_str("resultType").as_deref() {
        _ if legacy => {}
        None | Some("complete") => {}
        Some("input_required" | "task") => return Err(AnswerStatus::InProgress),
        Some(_) => return Err(AnswerStatus::Unknown),
    }
    let has_content = result.get("content").is_some_and(|c| c.trim_start().starts_with('['));
    let structured = result.get("structuredContent").filter(|s| !raw::is_null(s));
    if !has_content && structured.is_none() {
        return Err(AnswerStatus::Unknown);
    }
    let mut said = Said::default();
    if let Some(object) = structured.filter(|s| raw::is_object(s)) {
        said.object(&unwrapped(object), true);
    }
    for text in answer_texts(result) {
        match raw::is_object(&text) && raw::members(&text).is_some() {
            true => said.object(&unwrapped(&text), false),
            false => said.alone(&text),
        }
    }
    // Nothing is taken back by what is said deeper down but a "done".
    if said.done && !said.failed {
        let deeper = deeper::of_result(result);
        said.failed |= deeper.failed;
        said.doubted |= deeper.doubted;
    }
    Ok(said)
}

/// What a word of a status means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Word {
    Done,
    GoesOn,
    Failed,
    /// Of no list.
    Other,
}

impl Word {
    pub(super) fn of(word: &str) -> Word {
        let word = word.trim().to_ascii_lowercase().replace(['-', ' '], "_");
        let is_in = |list: &[&str]| list.contains(&word.as_str());
        match () {
            () if is_in(&DONE) => Word::Done,
            () if is_in(&GOES_ON) => Word::GoesOn,
            () if is_in(&FAILED) => Word::Failed,
            () => Word::Other,
        }
    }
}

/// What all parts of an answer say together.
#[derive(Default)]
struct Said {
    done: bool,
    goes_on: bool,
    failed: bool,
    /// A status of no list.
    other: bool,
    against: Option<Against>,
    /// Something inside has a status that does not mean done: whose it is can't be told.
    doubted: bool,
}

impl Said {
    fn sum(&self) -> AnswerStatus {
        match (self.failed || self.other, self.goes_on, self.done) {
            (true, ..) => AnswerStatus::Unknown,
            (_, true, _) => AnswerStatus::InProgress,
            (_, _, true) if !self.doubted => AnswerStatus::Done,
            _ => AnswerStatus::Unsaid,
        }
    }

    fn word(&mut self, word: &str) {
        match Word::of(word) {
            Word::Done => self.done = true,
            Word::GoesOn => self.goes_on = true,
            Word::Failed => self.failed = true,
            Word::Other => self.other = true,
        }
    }

    /// A text that is one word of the list and nothing else says what the word says; prose says nothing.
    fn alone(&mut self, text: &str) {
        let word = text.trim().trim_end_matches(['.', '!']).to_ascii_lowercase();
        match Word::of(&word) {
            Word::Done => self.done = true,
            Word::GoesOn => self.goes_on = true,
            Word::Failed | Word::Other => {}
        }
    }

    fn object(&mut self, object: &str, structured: bool) {
        let members = raw::members(object).unwrap_or_default();
        let mut waits = !members.is_empty();
        for (key, value) in &members {
            waits &= matches!(
                key.as_ref(),
                "retryAfterMs" | "retry_after_ms" | "retryAfter" | "retry_after"
            );
            let before = (self.failed, self.goes_on, self.other);
            match key.as_ref() {
                _ if raw::is_null(value) => {}
                "status" | "state" => match raw::as_str(value) {
                    Some(word) => self.word(&word),
                    // A number, an object: a word of no list.
                    None => self.other = true,
                },
                "success" | "ok" => self.failed |= !is_true(value),
                "error" => self.failed = true,
                "errors" => self.failed |= raw::items(value).is_none_or(|i| !i.is_empty()),
                // The reference ledger's own word: a result that is new, or that of an earlier run, is of work that
                // is done.
                "replayed" => self.done |= raw::as_bool(value).is_some(),
                _ => {}
            }
            if before != (self.failed, self.goes_on, self.other) {
                self.against.get_or_insert_with(|| Against {
                    structured,
                    member: format!("{key}: {}", short(value.trim(), MEMBER)),
                });
            }
        }
        // One that only says when to come back is not success.
        self.goes_on |= waits;
    }
}

pub(super) fn is_true(value: &str) -> bool {
    raw::as_bool(value) == Some(true)
        || value.trim() == "1"
        || raw::as_str(value).is_some_and(|s| s.eq_ignore_ascii_case("true"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(t: &str) -> String {
        format!(r#"{{"content":[{{"type":"text","text":{}}}]}}"#, raw::quote(t))
    }

    #[test]
    fn only_words_of_the_list_say_that_it_is_done() {
        for word in ["done", "completed", "succeeded", "success", "ok", "finished", "Done", " OK "]
        {
            let status = format!(r#"{{"status":"{word}"}}"#);
            assert_eq!(answer_status(&text(&status), false), AnswerStatus::Done, "{word}");
            let state = format!(r#"{{"structuredContent":{{"state":"{word}"}}}}"#);
            assert_eq!(answer_status(&state, false), AnswerStatus::Done, "{word}");
        }
        for (object, want) in [
            (r#"{"request_id":"r","status":"in_progress"}"#, AnswerStatus::InProgress),
            (r#"{"ticket_id":"T-1","replayed":false}"#, AnswerStatus::Done),
            (r#"{"ticket_id":"T-1"}"#, AnswerStatus::Unsaid),
            ("charged 100.0", AnswerStatus::Unsaid),
            ("It is not done.", AnswerStatus::Unsaid),
            ("done", AnswerStatus::Done),
            ("OK.", AnswerStatus::Done),
            (r#"{"retryAfterMs":500}"#, AnswerStatus::InProgress),
            (r#"{"status":"unknown"}"#, AnswerStatus::Unknown),
            (r#"{"status":"In-Progress"}"#, AnswerStatus::InProgress),
            (r#"{"status":"waiting"}"#, AnswerStatus::InProgress),
            (r#"{"status":"accepted"}"#, AnswerStatus::InProgress),
            (r#"{"status":"failed"}"#, AnswerStatus::Unknown),
            (r#"{"status":"expired"}"#, AnswerStatus::Unknown),
            (r#"{"status":"dead_letter"}"#, AnswerStatus::Unknown),
            (r#"{"status":"partially_completed"}"#, AnswerStatus::Unknown),
            (r#"{"status":"open"}"#, AnswerStatus::Unknown),
            (r#"{"status":200}"#, AnswerStatus::Unknown),
            (r#"{"status":null,"replayed":true}"#, AnswerStatus::Done),
        ] {
            assert_eq!(answer_status(&text(object), false), want, "{object}");
        }
    }

    #[test]
    fn what_speaks_against_it_is_heard_wherever_it_stands() {
        for against in [
            r#""success":false"#,
            r#""ok":false"#,
            r#""ok":"no""#,
            r#""success":0"#,
            r#""error":"boom""#,
            r#""error":{"code":1}"#,
            r#""errors":["boom"]"#,
            r#""state":"rejected""#,
            r#""status":"done","status":"failed""#,
        ] {
            for beside in [r#""status":"done""#, r#""replayed":false"#, r#""ticket_id":"T-1""#] {
                let object = format!("{{{beside},{against}}}");
                let got = answer_status(&text(&object), false);
                assert_eq!(got, AnswerStatus::Unknown, "{object}");
            }
            // In another item than the one that says it is done, and beside structured content.
            let (done, against) = (r#"{"status":"done"}"#, format!("{{{against}}}"));
            let items = format!(
                r#"{{"content":[{{"type":"text","text":{}}},{{"type":"text","text":{}}}]}}"#,
                raw::quote(done),
                raw::quote(&against)
            );
            assert_eq!(answer_status(&items, false), AnswerStatus::Unknown, "{items}");
            let both = format!(
                r#"{{"content":[{{"type":"text","text":{}}}],"structuredContent":{done}}}"#,
                raw::quote(&against)
            );
            assert_eq!(answer_status(&both, false), AnswerStatus::Unknown, "{both}");
        }
        for nothing in [r#""error":null"#, r#""errors":[]"#, r#""ok":true"#, r#""success":true"#] {
            let object = format!(r#"{{"status":"done",{nothing}}}"#);
            assert_eq!(answer_status(&text(&object), false), AnswerStatus::Done, "{object}");
        }
        let mixed = r#"{"content":[{"type":"text","text":"{\"status\":\"running\"}"}],"structuredContent":{"status":"done"}}"#;
        assert_eq!(answer_status(mixed, false), AnswerStatus::InProgress);
    }

    #[test]
    fn what_speaks_against_it_is_named_with_its_place() {
        let beside = |structured: &str| {
            format!(
                r#"{{"content":[{{"type":"text","text":"charged"}}],"structuredContent":{structured}}}"#
            )
        };
        for (object, want) in [
            (r#"{"ok":false,"id":1}"#, Some("ok: false")),
            (r#"{"id":1,"success": false}"#, Some("success: false")),
            (r#"{"error":{"code":7}}"#, Some(r#"error: {"code":7}"#)),
            (r#"{"status":"open"}"#, Some(r#"status: "open""#)),
            (r#"{"state":"pending"}"#, Some(r#"state: "pending""#)),
            (r#"{"result":{"ok":0}}"#, Some("ok: 0")),
            (r#"{"ok":true,"error":null,"status":"done"}"#, None),
            (r#"{"id":1}"#, None),
        ] {
            let got = against(&beside(object), false);
            assert_eq!(got.as_ref().map(|a| a.member.as_str()), want, "{object}");
            assert!(got.is_none_or(|a| a.structured));
            let in_text = against(&text(object), false);
            assert_eq!(in_text.as_ref().map(|a| a.member.as_str()), want, "{object}");
            assert!(in_text.is_none_or(|a| !a.structured));
        }
    }

    #[test]
    fn a_structured_part_is_shown_once() {
        use crate::journal::call::{answer_shown, structured_beside};
        let beside = |text: &str, structured: &str| {
            let text = raw::quote(text);
            format!(
                r#"{{"content":[{{"type":"text","text":{text}}}],"structuredContent":{structured}}}"#
            )
        };
        for (text, structured) in [
            ("{\n  \"a\": 1\n}", r#"{"a":1}"#),
            (r#"{"a":1} and more"#, r#"{"a":1}"#),
            ("charged 100", r#"{"result":"charged 100"}"#),
            ("5", r#"{"result":5}"#),
        ] {
            assert_eq!(structured_beside(&beside(text, structured)), None, "{text}");
        }
        assert_eq!(answer_shown(&beside("charged", r#"{"ok":false}"#)), "charged\n{\"ok\":false}");
        assert_eq!(
            answer_shown(r#"{"structuredContent":{"ok":false},"content":[]}"#),
            r#"{"ok":false}"#
        );
        assert_eq!(answer_shown(r#"{"structuredContent":null,"content":[]}"#), "");
    }

    #[test]
    fn a_done_is_taken_back_by_whatever_part_of_the_answer_says_otherwise() {
        let done = r#"{"type":"text","text":"{\"status\":\"done\"}"}"#;
        for (beside, want) in [
            // Deeper down, in lists, under other spellings of the names.
            (r#""structuredContent":{"result":1,"data":{"success":false}}"#, AnswerStatus::Unknown),
            (r#""structuredContent":{"items":[{"ok":false}]}"#, AnswerStatus::Unknown),
            (r#""structuredContent":{"job":{"state":"FAILED"}}"#, AnswerStatus::Unknown),
            (r#""structuredContent":{"Status":"FAILED"}"#, AnswerStatus::Unknown),
            (r#""structuredContent":{"isError":true}"#, AnswerStatus::Unknown),
            (r#""structuredContent":{"error_message":"boom"}"#, AnswerStatus::Unknown),
            (r#""structuredContent":{"x":"{\"ok\":false}"}"#, AnswerStatus::Unknown),
            (r#""success":false"#, AnswerStatus::Unknown),
            // Of the thing made, or of the work: it can't be told.
            (r#""structuredContent":{"ticket":{"status":"open"}}"#, AnswerStatus::Unsaid),
            (
                r#""structuredContent":{"ticket":{"status":"done","error":null}}"#,
                AnswerStatus::Done,
            ),
            (
                r#""structuredContent":{"failed":0,"errors":[],"error_message":""}"#,
                AnswerStatus::Done,
            ),
            (r#""_meta":{"status":"failed"}"#, AnswerStatus::Done),
        ] {
            let result = format!(r#"{{"content":[{done}],{beside}}}"#);
            assert_eq!(answer_status(&result, true), want, "{result}");
        }
        for (text, want) in [
            ("FAILED", AnswerStatus::Unknown),
            ("Error: the ticket was not created", AnswerStatus::Unknown),
            ("[{\"status\":\"failed\"}]", AnswerStatus::Unknown),
            ("```json\n{\"ok\": false}\n```", AnswerStatus::Unknown),
            ("the result: {\"success\": false}", AnswerStatus::Unknown),
            ("Ticket T-1 was created {for you}", AnswerStatus::Done),
            ("errors are rare", AnswerStatus::Done),
        ] {
            let quoted = raw::quote(text);
            let item = format!(r#"{{"type":"text","text":{quoted}}}"#);
            let result = format!(r#"{{"content":[{done},{item}]}}"#);
            assert_eq!(answer_status(&result, true), want, "{result}");
            let embedded =
                format!(r#"{{"type":"resource","resource":{{"uri":"a:b","text":{quoted}}}}}"#);
            let result = format!(r#"{{"content":[{embedded},{done}]}}"#);
            assert_eq!(answer_status(&result, true), want, "{result}");
        }
        // Of an answer that says nothing, prose and what is deep inside makes no failure.
        let unsaid = r#"{"content":[],"structuredContent":{"tickets":[{"status":"failed"}]}}"#;
        assert_eq!(answer_status(unsaid, true), AnswerStatus::Unsaid);
        let deep = format!("{}{}", r#"{"a":"#.repeat(200), "}".repeat(200))
            .replace(r#""a":}"#, r#""a":1}"#);
        let result = format!(r#"{{"content":[{done}],"structuredContent":{deep}}}"#);
        assert_eq!(answer_status(&result, true), AnswerStatus::Unsaid, "not read to its ground");
    }

    #[test]
    fn a_word_of_the_thing_made_is_no_failure() {
        for (object, want) in [
            (r#"{"basket_id":"b","status":"open"}"#, false),
            (r#"{"basket_id":"b"}"#, false),
            (r#"{"status":"done"}"#, false),
            (r#"{"status":"failed"}"#, true),
            (r#"{"ok":false}"#, true),
            (r#"{"status":"queued"}"#, true),
        ] {
            assert_eq!(unfinished(&text(object), false), want, "{object}");
        }
    }

    #[test]
    fn results_that_are_no_tool_s_say_nothing() {
        let cases = [
            (
                r#"{"structuredContent":{"result":{"status":"in_progress"}},"content":[]}"#,
                AnswerStatus::InProgress,
            ),
            (r#"{"resultType":"input_required","inputRequests":{}}"#, AnswerStatus::InProgress),
            (r#"{"resultType":"surprise"}"#, AnswerStatus::Unknown),
            ("{}", AnswerStatus::Unknown),
            (r#"{"toolResult":"done"}"#, AnswerStatus::Unknown),
            (r#"{"content":"done"}"#, AnswerStatus::Unknown),
            (r#"{"structuredContent":{"ticket_id":"T-1"}}"#, AnswerStatus::Unsaid),
            (r#"{"resultType":"complete","content":[]}"#, AnswerStatus::Unsaid),
            (r#"{"task":{"taskId":"t-1","status":"working"}}"#, AnswerStatus::InProgress),
        ];
        for (result, want) in cases {
            assert_eq!(answer_status(result, false), want, "{result}");
        }
        // Before 2026-07-28 nobody has given the member a meaning.
        for word in ["input_required", "task", "surprise"] {
            let r = format!(r#"{{"resultType":"{word}","taskId":"t","content":[]}}"#);
            assert_eq!(answer_status(&r, true), AnswerStatus::Unsaid, "{word}");
        }
    }
}
