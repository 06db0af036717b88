use super::*;
use proptest::prelude::*;

fn view(text: &str) -> View {
    View::new(Arc::new(Document::new("t".into(), text.into())))
}

fn shown(v: &View) -> Vec<String> {
    let line = |i| v.line(i).unwrap();
    (0..v.len()).map(|i| format!("{}{}", " ".repeat(line(i).depth), line(i).text)).collect()
}

#[test]
fn a_value_has_its_lines() {
    let v = view(r#" {"a": 1.0, "b":[1,{"c":"}\"]"},[]],"d":{} } "#);
    let want = [
        "{",
        " \"a\": 1.0,",
        " \"b\":[",
        "  1,",
        "  {",
        "   \"c\":\"}\\\"]\"",
        "  },",
        "  []",
        " ],",
        " \"d\":{}",
        "}",
    ];
    assert_eq!(shown(&v), want);
}

#[test]
fn folding_hides_and_shows_and_keeps_the_place() {
    let mut v = view(r#"{"a":{"x":[1,2]},"b":[3]}"#);
    let all = shown(&v);
    v.at = 3;
    v.fold();
    assert_eq!((v.at, v.line(2).unwrap().fold, v.line(2).unwrap().hidden), (2, Some(true), 3));
    assert_eq!(v.len(), all.len() - 3);
    v.fold();
    assert_eq!(shown(&v), all);
    v.at = 0;
    v.fold_all();
    assert_eq!(shown(&v), ["{", " \"a\":{", " \"b\":[", "}"]);
    v.query = "2".into();
    assert!(v.seek(false));
    assert_eq!(v.line(v.at).unwrap().text, "2");
    v.fold_all();
    assert_eq!(shown(&v), all);
}

#[test]
fn searching_goes_on_from_the_place_and_round() {
    let mut v = view(r#"{"Key":"one","b":"ONE","c":"two"}"#);
    v.query = "one".into();
    for want in ["\"Key\":\"one\",", "\"b\":\"ONE\",", "\"Key\":\"one\","] {
        assert!(v.seek(false));
        assert_eq!(v.line(v.at).unwrap().text, want);
    }
    v.query = "none".into();
    assert!(!v.seek(false));
    // The raw view keeps the place.
    v.turn();
    assert!(v.raw && v.len() == 1);
    v.turn();
    assert_eq!(v.line(v.at).unwrap().text, "{");
}

#[test]
fn what_is_no_json_is_shown_as_it_is() {
    for text in ["", "plain words\nand more", "{\"a\":", "{]", "[1] trailing", "{\"a\" \"", "[,]x"]
    {
        let v = view(text);
        assert!(v.raw && !v.document.is_json, "{text:?}");
        assert_eq!(v.len(), text.split('\n').count());
    }
    let deep = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
    let v = view(&deep);
    assert_eq!(v.len(), usize::from(super::index::DEPTH) * 2 + 1);
}

#[test]
fn fifty_megabytes_are_indexed_once_and_walked_at_once() {
    let row = r#"{"id": 12345, "title": "在庫差異 倉庫B", "tags": ["a", "b"], "body": "xxxxxxxxxxxxxxxxxxxx"},"#;
    let n = (8 << 20) / row.len();
    let mut v = view(&format!("[{}1]", row.repeat(n)));
    assert_eq!(v.len(), n * 9 + 3);
    v.step(isize::MAX / 2);
    assert_eq!(v.line(v.at).unwrap().text, "]");
    v.query = "12345".into();
    assert!(v.seek(false));
    assert_eq!(v.at, 2);
}

#[test]
fn the_index_of_many_tiny_values_is_bounded_and_loses_none() {
    let text = format!("[{}[2,[3]],{{\"a\":1}},9]", "1,".repeat(3_000_000));
    let v = view(&text);
    assert!(v.len() < 2_000_000 + text.len() / 200 + 10, "{}", v.len());
    let whole: String = (0..v.len()).map(|i| v.line(i).unwrap().text).collect();
    assert_eq!(whole, text);
    assert_eq!(v.line(v.len() - 1).unwrap().text, "]");
    let lines = "x\n".repeat(2_500_000);
    let v = view(&lines);
    assert!(v.raw && v.len() < 2_000_000 + lines.len() / 400 + 10, "{}", v.len());
}

fn any_json() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        ".{0,12}".prop_map(Into::into),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Into::into),
            prop::collection::vec((".{0,6}", inner), 0..6)
                .prop_map(|m| serde_json::Value::Object(m.into_iter().collect())),
        ]
    })
}

proptest! {
    /// Lines put together are the text, and indented as serde does it.
    #[test]
    fn nothing_is_lost(value in any_json().prop_filter("a container", |v| v.is_object() || v.is_array())) {
        let v = view(&value.to_string());
        prop_assert!(v.document.is_json);
        let lines: Vec<String> = (0..v.len()).map(|i| v.line(i).unwrap().text.to_owned()).collect();
        prop_assert_eq!(lines.concat(), value.to_string());
        let pretty = serde_json::to_string_pretty(&value).unwrap();
        let depths: Vec<usize> =
            pretty.lines().map(|l| (l.len() - l.trim_start_matches(' ').len()) / 2).collect();
        prop_assert_eq!((0..v.len()).map(|i| v.line(i).unwrap().depth).collect::<Vec<_>>(), depths);
    }
}
