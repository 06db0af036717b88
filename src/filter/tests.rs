use super::*;
use proptest::prelude::*;

#[derive(Debug, Default, Clone)]
struct Thing {
    tool: &'static str,
    outcome: &'static str,
    id: &'static str,
    text: &'static str,
    ms: Option<f64>,
    age: Option<f64>,
}

impl Subject for Thing {
    fn texts(&self, field: Field) -> Vec<Cow<'_, str>> {
        let t = match field {
            Field::Tool => self.tool,
            Field::Outcome => self.outcome,
            Field::Id => self.id,
            Field::Text => self.text,
            _ => "",
        };
        if t.is_empty() { Vec::new() } else { vec![t.into()] }
    }
    fn number(&self, field: Field) -> Option<f64> {
        match field {
            Field::Ms => self.ms,
            Field::Age => self.age,
            _ => None,
        }
    }
}

fn thing() -> Thing {
    Thing {
        tool: "create_ticket",
        outcome: "tool_error",
        id: "\"7\"",
        text: "No such 障害 row",
        ms: Some(750.0),
        age: Some(400.0),
    }
}

#[test]
fn what_matches() {
    for yes in [
        "",
        "tool:create_ticket",
        "tool:CREATE",
        "tool:create*",
        "tool:*ticket",
        "tool:*te_t*",
        "outcome:tool-error",
        "outcome:\"tool error\"",
        "id:7",
        "id:\"\\\"7\\\"\"",
        "ms:>500",
        "ms:>=750 ms:<=750 ms:750 ms:<1s",
        "age:>5m",
        "age:<1h",
        "障害",
        "text:\"no SUCH\"",
        "ticket row",
        "!find",
        "nothing | ticket",
        "(nothing | create) & !ms:<10",
        "!(a & b)",
        "! ! ticket",
        "tool:=create_ticket",
    ] {
        assert!(parse(yes).unwrap().matches(&thing()), "{yes}");
    }
    for no in [
        "tool:find",
        "tool:create*x",
        "outcome:tool",
        "id:77",
        "ms:>750",
        "age:<5m",
        "gen:1",
        "ticket nothing",
        "!ticket",
        "xx | yy",
        "!(create | x)",
        "tool:=create",
        "state:done",
    ] {
        assert!(!parse(no).unwrap().matches(&thing()), "{no}");
    }
    // What has no number is neither above nor below.
    let none = Thing::default();
    assert!(!parse("ms:<5").unwrap().matches(&none) && !parse("ms:>=5").unwrap().matches(&none));
}

#[test]
fn a_mistake_is_marked_where_it_is() {
    for (text, at, says) in [
        ("tol:x", "tol:", "did you mean tool:"),
        ("a tool:", "", "wants a value"),
        ("ms:fast b", "fast", "no number"),
        ("age:5y", "5y", "no number"),
        ("(a | b", "(", "never closed"),
        ("a ) b", ")", "never opened"),
        ("a | | b", "|", "missing before"),
        ("a & ", "", "missing here"),
        ("text:\"abc", "\"abc", "no end"),
        ("http://x", "http:", "goes in quotes"),
        ("()", ")", "missing"),
    ] {
        let m = parse(text).unwrap_err();
        assert!(m.why.contains(says), "{text}: {}", m.why);
        assert_eq!(&text[m.at.clone()], at, "{text}: {m:?}");
        assert!(m.marked(text).contains('^'));
    }
    assert_eq!(
        parse("ab ms:x").unwrap_err().marked("ab ms:x").lines().nth(1).unwrap().find('^'),
        Some(6)
    );
    assert!(parse(&"(".repeat(100_000)).is_err() && parse(&"!".repeat(100_000)).is_err());
}

fn node() -> impl Strategy<Value = Node> {
    let value = "[\\PC]{1,8}";
    let leaf = prop_oneof![
        value.prop_map(Node::Word),
        (
            prop_oneof![
                Just(Field::Tool),
                Just(Field::Outcome),
                Just(Field::Text),
                Just(Field::Id)
            ],
            value
        )
            .prop_map(|(field, value)| Node::Text { field, value }),
        (prop_oneof![Just(Sign::Less), Just(Sign::Equal), Just(Sign::GreaterOrEqual)], 0u32..2000)
            .prop_map(|(sign, n)| {
                Node::Number { field: Field::Ms, sign, value: f64::from(n), written: n.to_string() }
            }),
    ];
    leaf.prop_recursive(4, 24, 3, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 2..4).prop_map(Node::All),
            proptest::collection::vec(inner.clone(), 2..4).prop_map(Node::Any),
            inner.prop_map(|n| Node::Not(Box::new(n))),
        ]
    })
}

proptest! {
    #[test]
    fn what_is_written_is_read_as_itself(n in node()) {
        let filter = Filter(Some(n));
        let text = filter.to_string();
        prop_assert_eq!(parse(&text).map_err(|m| m.marked(&text)).unwrap(), filter, "{}", text);
    }

    #[test]
    fn the_signs_mean_what_they_say(a in node(), b in node()) {
        let t = thing();
        let (x, y) = (a.matches(&t), b.matches(&t));
        let text = |n: Node| Filter(Some(n)).to_string();
        let (a, b) = (text(Node::All(vec![a, Node::Word("e".into())])), text(Node::All(vec![b, Node::Word("e".into())])));
        let is = |f: String| parse(&f).unwrap().matches(&t);
        prop_assert_eq!(is(format!("({a}) & ({b})")), x && y);
        prop_assert_eq!(is(format!("({a}) ({b})")), x && y);
        prop_assert_eq!(is(format!("{a} | {b}")), x || y);
        prop_assert_eq!(is(format!("!({a})")), !x);
    }

    #[test]
    fn no_text_panics_and_every_mistake_has_a_place(text in "[\\PC\"\\\\&|!():<>=a-z0-9 ]{0,40}") {
        if let Err(m) = parse(&text) {
            prop_assert!(m.at.end <= text.len() && text.is_char_boundary(m.at.start) && text.is_char_boundary(m.at.end));
            m.marked(&text);
        }
    }
}
