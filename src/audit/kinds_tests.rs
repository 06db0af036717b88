//! Each kind of finding on a small trace that must give it, and on its twin that must not.

use super::*;

fn kinds(text: &str, contracts: Option<&str>) -> Vec<&'static str> {
    tests::audited(text, contracts).findings().list().iter().map(|f| f.kind.word()).collect()
}

/// Writes the neutral form.
#[derive(Default)]
struct T(String, u32);

impl T {
    fn line(mut self, rest: &str) -> T {
        self.1 += 1;
        self.0.push_str(&format!("{{\"t\":{},{rest}}}\n", 1000 + self.1));
        self
    }
    fn start(self) -> T {
        self.line(r#""dir":"proc","event":"start","pid":1"#)
    }
    fn exit(self) -> T {
        self.line(r#""dir":"proc","event":"exit","signal":9"#)
    }
    fn ask(self, id: u32, tool: &str, args: &str, headers: &str) -> T {
        self.line(&format!(r#""dir":"out",{headers}"msg":{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}","arguments":{args}}}}}"#))
    }
    fn answer(self, id: u32, result: &str) -> T {
        self.line(&format!(r#""dir":"in","msg":{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#))
    }
    fn call(self, id: u32, tool: &str, args: &str, structured: &str) -> T {
        self.ask(id, tool, args, "")
            .answer(id, &format!(r#"{{"content":[],"structuredContent":{structured}}}"#))
    }
    fn server(self, msg: &str) -> T {
        self.line(&format!(r#""dir":"in","msg":{{"jsonrpc":"2.0",{msg}}}"#))
    }
}

const MADE: &str = r#"{"basket_id":"b-781"}"#;

#[test]
fn handles_of_others() {
    let as_session = |s: &str| format!(r#""headers":{{"Mcp-Session-Id":"{s}"}},"#);
    let with_key = |k: &str| format!(r#""headers":{{"Authorization":"Bearer {k}"}},"#);
    let made_and_used = |a: &str, b: &str| {
        let result = format!(r#"{{"structuredContent":{MADE}}}"#);
        let t = T::default().start().ask(1, "create_basket", "{}", a).answer(1, &result);
        t.ask(2, "add_item", MADE, b).answer(2, r#"{"content":[]}"#).0
    };
    assert_eq!(
        kinds(&made_and_used(&as_session("one"), &as_session("two")), None),
        ["foreign_handle"]
    );
    assert_eq!(kinds(&made_and_used(&as_session("one"), &as_session("one")), None), [""; 0]);
    assert_eq!(
        kinds(&made_and_used(&with_key("alice-key"), &with_key("bobby-key")), None),
        ["foreign_handle"]
    );
    // What was hidden on write can't be told apart.
    assert_eq!(
        kinds(&made_and_used(&with_key("[redacted]"), &with_key("[redacted]")), None),
        [""; 0]
    );
    let client = |name: &str| {
        format!(
            r#""dir":"out","msg":{{"jsonrpc":"2.0","id":9,"method":"initialize","params":{{"clientInfo":{{"name":"{name}","version":"1"}}}}}}"#
        )
    };
    let two = |a: &str, b: &str| {
        let t = T::default().start().line(&client(a)).call(1, "create_basket", "{}", MADE).exit();
        t.start().line(&client(b)).call(1, "add_item", MADE, "{}").0
    };
    assert_eq!(kinds(&two("night-agent", "day-agent"), None), ["foreign_handle"]);
    assert_eq!(kinds(&two("night-agent", "night-agent"), None), ["handle_used_across_restart"]);
}

#[test]
fn what_needs_a_connection_that_stays() {
    let t = || T::default().start();
    let list = r#""method":"notifications/tools/list_changed""#;
    assert_eq!(kinds(&t().server(list).0, None), ["needs_connection"]);
    // During a call it goes over that call's own stream.
    let during =
        t().ask(1, "x", "{}", "").server(r#""method":"notifications/message","params":{}"#);
    assert_eq!(kinds(&during.answer(1, "{}").0, None), [""; 0]);
    assert_eq!(
        kinds(&t().server(r#""id":"s1","method":"sampling/createMessage","params":{}"#).0, None),
        ["needs_connection"]
    );
    let subscribes = r#""dir":"out","msg":{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"u"}}"#;
    assert_eq!(kinds(&t().line(subscribes).0, None), ["needs_connection"]);
    assert_eq!(kinds(&t().server(r#""id":7,"method":"ping""#).0, None), [""; 0]);
}

#[test]
fn the_same_value_made_again_is_another_thing_unless_it_is_the_same_request() {
    let two = |first: &str, second: &str| {
        let t =
            T::default().start().call(1, "create_ticket", first, r#"{"ticket_id":"T-1"}"#).exit();
        t.start().call(1, "create_ticket", second, r#"{"ticket_id":"T-1"}"#).0
    };
    assert_eq!(kinds(&two("{}", "{}"), None), ["handle_rebound"]);
    let same = r#"{"request_id":"r-1"}"#;
    assert_eq!(kinds(&two(same, same), None), [""; 0]);
    assert_eq!(kinds(&two(same, r#"{"request_id":"r-2"}"#), None), ["handle_rebound"]);
    // Who lists a value in a later life has not made it.
    let t = T::default().start().call(1, "create_basket", "{}", MADE).exit().start();
    assert_eq!(
        kinds(&t.call(1, "list_baskets", "{}", r#"{"all":[{"basket_id":"b-781"}]}"#).0, None),
        [""; 0]
    );
}

#[test]
fn contracts_are_held() {
    let c = "[tools.make]\nproduces='basket_id'\npattern='basket (\\S+)'\n[tools.use]\nrequires=['/to/basket', {name='draft_id', optional=true}]\n[tools.draft]\nproduces='draft_id'";
    let trace = |lines: &[&str]| kinds(&lines.join("\n"), Some(c));
    let made = r#"{"tool":"make","arguments":{},"result":{"content":[{"type":"text","text":"Made basket b-1"}]}}"#;
    assert_eq!(trace(&[made, r#"{"tool":"use","arguments":{"to":{"basket":"b-1"}}}"#]), [""; 0]);
    assert_eq!(
        trace(&[made, r#"{"tool":"use","arguments":{"to":{"basket":["b-1","b-2"]}}}"#]),
        ["unminted_handle"]
    );
    assert_eq!(trace(&[made, r#"{"tool":"use","arguments":{}}"#]), ["missing"]);
    assert_eq!(
        trace(&[
            r#"{"tool":"make","arguments":{},"result":{"content":[{"type":"text","text":"done"}]}}"#
        ]),
        ["not_returned"]
    );
    assert_eq!(
        trace(&[r#"{"tool":"make","arguments":{},"result":{"basket_id":null}}"#]),
        ["not_returned"]
    );
    // The trace holds no result of it, as in the article's check; a tool that failed returns nothing by right.
    assert_eq!(trace(&[r#"{"tool":"make","arguments":{}}"#]), ["not_returned"]);
    assert_eq!(
        trace(&[r#"{"tool":"make","arguments":{},"result":{"content":[],"isError":true}}"#]),
        [""; 0]
    );
    let draft = r#"{"tool":"draft","arguments":{},"result":{"draft_id":"d-77"}}"#;
    let wrong = r#"{"tool":"use","arguments":{"to":{"basket":"d-77"}}}"#;
    assert_eq!(trace(&[draft, wrong]), ["wrong_kind"]);
    // A number and its text are one handle.
    let number = r#"{"tool":"make","arguments":{},"result":{"basket_id":7}}"#;
    assert_eq!(trace(&[number, r#"{"tool":"use","arguments":{"to":{"basket":"7"}}}"#]), [""; 0]);
}

#[test]
fn a_call_given_up_is_unknown_until_it_is_answered() {
    let cancelled = r#""dir":"out","msg":{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;
    let t = || T::default().start().ask(1, "create_basket", "{}", "").line(cancelled);
    assert_eq!(kinds(&t().0, None), ["outcome_unknown"]);
    assert_eq!(kinds(&t().answer(1, "{\"content\":[]}").0, None), [""; 0]);
    // Only waiting at the end of the trace: nothing is concluded.
    assert_eq!(kinds(&T::default().start().ask(1, "create_basket", "{}", "").0, None), [""; 0]);
}

#[test]
fn calls_that_nothing_tells_apart_are_not_taken_for_one_another() {
    let two = |first: &str, second: &str| {
        let t = T::default().start().ask(1, "charge", first, "").exit().start();
        kinds(&t.ask(2, "charge", second, "").answer(2, r#"{"content":[]}"#).0, None)
    };
    let amount = |r: &str| format!(r#"{{"request_id":"{r}","amount":5}}"#);
    assert_eq!(two(&amount("r-1"), &amount("r-2")), ["outcome_unknown", "suspect_duplicate"]);
    assert_eq!(two(r#"{"request_id":"r-1"}"#, r#"{"request_id":"r-2"}"#), ["outcome_unknown"]);
}
