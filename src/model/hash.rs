//! The arguments hash against a row's, and whether the recipe is proven for this ledger: it is once it
//! reproduces the hash of another row. Pure.

use crate::journal::{Call, Tool};
use crate::json::key::Spelling;
use crate::json::raw;
use crate::judge::HashCheck;
use crate::ledger::hash::{REQUEST_ID, Recipe};
use crate::ledger::{Effect, Row};
use crate::record::redact::masked;

/// What a check found, and how, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checked {
    /// The word.
    pub check: HashCheck,
    /// How it was found out.
    pub how: String,
}

/// How a recipe was proven: the request whose hash it reproduced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proof {
    /// The recipe.
    pub recipe: Recipe,
    /// That request.
    pub request_id: String,
}

/// What a tool's schema says of its arguments: servers hash what they took in, and may have dropped what is not
/// declared, added defaults, and turned one kind of number into another. Empty where nobody knows the schema.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Shape {
    /// Declared properties with the raw JSON of their schemas.
    declared: Vec<(String, String)>,
}

impl Shape {
    /// As the server lists the tool.
    pub fn of(tool: &Tool) -> Shape {
        let schema = tool.input_schema.as_deref().unwrap_or_default();
        let properties = raw::get(schema, "properties").and_then(raw::members).unwrap_or_default();
        let declared = properties.into_iter().map(|(k, v)| (k.into_owned(), v.to_owned()));
        Shape { declared: declared.collect() }
    }

    /// What the tool takes a request_id as, where its schema says that; of several kinds, a string.
    pub fn spelling(&self) -> Option<Spelling> {
        let schema = &self.declared.iter().find(|(name, _)| name == REQUEST_ID)?.1;
        let kinds = raw::get(schema, "type")?;
        let says = |kind: &str| match raw::items(kinds) {
            Some(list) => list.iter().any(|k| raw::as_str(k).as_deref() == Some(kind)),
            None => raw::as_str(kinds).as_deref() == Some(kind),
        };
        if says("string") {
            return Some(Spelling::Text);
        }
        (says("integer") || says("number")).then_some(Spelling::Number)
    }

    fn names(&self) -> Vec<String> {
        self.declared.iter().map(|(name, _)| name.clone()).collect()
    }

    /// Declared properties that `args` does not have, with their defaults.
    fn missing<'s>(&'s self, args: &str) -> Vec<(&'s str, Option<&'s str>)> {
        let members = raw::members(args).unwrap_or_default();
        let lacks = |name: &str| name != REQUEST_ID && !members.iter().any(|(k, _)| k == name);
        let missing = self.declared.iter().filter(|(name, _)| lacks(name));
        missing.map(|(name, schema)| (name.as_str(), raw::get(schema, "default"))).collect()
    }

    /// `args` with the defaults of what they lack; `None` where there are none.
    fn with_defaults(&self, args: &str) -> Option<String> {
        let added: Vec<_> =
            self.missing(args).into_iter().filter_map(|(k, d)| Some((k, d?))).collect();
        let members = raw::members(args).filter(|_| !added.is_empty())?;
        Some(object(members.iter().map(|(k, v)| (k.as_ref(), *v)).chain(added)))
    }

    /// Why a server may hash something else than `args`, dropped arguments and defaults aside.
    fn doubt(&self, args: &str) -> Option<String> {
        if let Some((name, _)) = self.missing(args).iter().find(|(_, default)| default.is_none()) {
            return Some(format!("{name} is not among them, and the server may have filled it in"));
        }
        let members = raw::members(args)?;
        let coerced = |name: &str, value: &str| {
            let schema = self.declared.iter().find(|(k, _)| k == name).map(|(_, s)| s.as_str());
            schema.is_some_and(|s| may_be_coerced(value, s))
        };
        let (name, _) = members.iter().find(|(k, v)| coerced(k, v))?;
        Some(format!("the server may take {name} for another kind of number"))
    }
}

/// Whether a server that types its arguments may change how a number in `value` is spelled: `100` for a float,
/// `1.0` for an integer. Says yes where the schema lies elsewhere.
fn may_be_coerced(value: &str, schema: &str) -> bool {
    let (mut integer, mut fraction) = (false, false);
    // Outside of strings a number is a run of these characters that begins with a digit or a minus.
    let (mut in_string, mut escaped) = (false, false);
    let outside: String = value
        .chars()
        .map(|c| {
            let inside = in_string;
            match c {
                '"' if !escaped => in_string = !in_string,
                _ => {}
            }
            escaped = c == '\\' && inside && !escaped;
            if inside || c == '"' { ' ' } else { c }
        })
        .collect();
    for word in outside.split(|c: char| !(c.is_ascii_alphanumeric() || "+-.".contains(c))) {
        if word.starts_with(|c: char| c.is_ascii_digit() || c == '-') {
            let whole = !word.contains(['.', 'e', 'E']);
            integer |= whole;
            fraction |= !whole;
        }
    }
    let says = |word: &str| schema.contains(word);
    (says("\"number\"") && integer)
        || (says("\"integer\"") && fraction)
        || (says("\"$ref\"") && (integer || fraction))
}

/// Whether `args` have `row_hash`, and by which of them, in words.
fn reproduces(recipe: Recipe, args: &str, shape: &Shape, row_hash: &str) -> Option<&'static str> {
    let is = |hash: Result<String, _>| hash.is_ok_and(|h: String| h.eq_ignore_ascii_case(row_hash));
    if is(recipe.hash(args)) {
        return Some("all arguments");
    }
    if shape.declared.is_empty() {
        return None;
    }
    let names = shape.names();
    if is(recipe.hash_declared(args, &names)) {
        return Some("the declared arguments only");
    }
    let full = shape.with_defaults(args)?;
    if is(recipe.hash_declared(&full, &names)) {
        return Some("the declared arguments, with defaults added");
    }
    is(recipe.hash(&full)).then_some("all arguments, with defaults added")
}

/// Whether `row_hash` is that of all of `args`, by any recipe.
pub fn is_of_all(args: &str, row_hash: &str) -> bool {
    let is = |r: &Recipe| r.hash(args).is_ok_and(|h| h.eq_ignore_ascii_case(row_hash));
    Recipe::ALL.iter().any(is)
}

/// Checks `args` against `row_hash`. `proof` of another request turns a difference into a fact.
pub fn check(
    args: Option<&str>,
    row_hash: Option<&str>,
    shape: &Shape,
    proof: Option<&Proof>,
) -> Checked {
    let not = |how: &str| Checked { check: HashCheck::NotChecked, how: how.to_owned() };
    let Some(args) = args else { return not("no arguments are known") };
    let Some(row_hash) = row_hash.filter(|h| !h.is_empty()) else {
        return not("the ledger holds no hash of this request");
    };
    let recipes = proof.map_or(Recipe::ALL, |p| std::slice::from_ref(&p.recipe));
    for recipe in recipes {
        if let Err(e) = recipe.hash(args) {
            return not(&format!("the arguments can't be hashed: {e}"));
        }
        if let Some(which) = reproduces(*recipe, args, shape, row_hash) {
            let how = format!("equal to the row's hash ({}, {which})", recipe.name());
            return Checked { check: HashCheck::Equal, how };
        }
    }
    if !masked(args).is_empty() {
        return not("a value in the arguments was replaced when they were recorded");
    }
    match (proof, shape.doubt(args)) {
        (Some(_), Some(doubt)) => Checked {
            check: HashCheck::DiffersUnproven,
            how: format!("differs from the row's hash, which proves nothing: {doubt}"),
        },
        (Some(p), None) => Checked {
            check: HashCheck::DiffersProven,
            how: format!(
                "differs from the row's hash; the recipe ({}) reproduces that of {}",
                p.recipe.name(),
                p.request_id
            ),
        },
        (None, _) => Checked {
            check: HashCheck::DiffersUnproven,
            how: "differs from the row's hash; no other row shows that the server hashes this way"
                .into(),
        },
    }
}

/// Looks for rows whose hash a recipe reproduces: from a call that was seen of it, or from the columns of its
/// effect. Two are enough, since each is a proof for all but itself. `shape` tells of a tool by its name.
pub fn prove<'a>(
    rows: impl IntoIterator<Item = &'a Row>,
    calls: &[&Call],
    shape: impl Fn(&str) -> Shape,
) -> Vec<Proof> {
    let mut proofs: Vec<Proof> = Vec::new();
    for row in rows {
        if proofs.iter().any(|p| p.request_id == row.request_id) {
            continue;
        }
        if proofs.len() > 1 {
            break;
        }
        let Some(hash) = row.args_hash.as_deref().filter(|h| !h.is_empty()) else { continue };
        for recipe in Recipe::ALL {
            let by_call = calls
                .iter()
                .filter(|c| c.request_id.as_deref() == Some(row.request_id.as_str()))
                .filter_map(|c| Some((c.args.as_deref()?, c.tool.as_str())))
                .any(|(args, tool)| reproduces(*recipe, args, &shape(tool), hash).is_some());
            if by_call || row.effects.iter().any(|e| from_effect(e, *recipe, hash).is_some()) {
                proofs.push(Proof { recipe: *recipe, request_id: row.request_id.clone() });
                break;
            }
        }
    }
    proofs
}

/// With more columns than this only the whole and each single omission are tried.
const ALL_SUBSETS: usize = 10;

/// The arguments (without a request_id) that `effect` was made from: the columns whose values together
/// have `row_hash`. An effect's table holds more than the arguments, so subsets are tried, large ones first.
pub fn from_effect(effect: &Effect, recipe: Recipe, row_hash: &str) -> Option<String> {
    let n = effect.columns.len();
    let mut masks: Vec<u32> = if n <= ALL_SUBSETS {
        (1..1_u32 << n).collect()
    } else if n < 32 {
        let all = (1_u32 << n) - 1;
        std::iter::once(all).chain((0..n).map(|i| all & !(1 << i))).collect()
    } else {
        return None;
    };
    masks.sort_by_key(|m| std::cmp::Reverse(m.count_ones()));
    masks.into_iter().find_map(|mask| {
        let chosen = effect.columns.iter().enumerate().filter(|(i, _)| mask & (1 << i) != 0);
        let args = object(chosen.map(|(_, (k, v))| (k.as_str(), v.as_str())));
        recipe.hash(&args).is_ok_and(|h| h.eq_ignore_ascii_case(row_hash)).then_some(args)
    })
}

/// A JSON object of raw values.
pub fn object<'a>(members: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    let list: Vec<String> =
        members.map(|(k, v)| format!("{}: {v}", crate::json::raw::quote(k))).collect();
    format!("{{{}}}", list.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::testing::{call, effect, row};

    #[test]
    fn a_hash_of_the_declared_arguments_is_not_that_of_all() {
        let hash = Recipe::ALL[0].hash(r#"{"title":"t"}"#).unwrap();
        assert!(is_of_all(r#"{"title":"t"}"#, &hash));
        // The server dropped the token: its row has the same hash with and without it.
        assert!(!is_of_all(r#"{"title":"t","token":"[redacted]"}"#, &hash));
    }

    /// Made by CPython over {"body": "ログイン不可", "title": "障害報告"} (the night ledger's night-001).
    const NIGHT_001: &str = "8d8e68f2a12b9561ac972825dd64440466c9b33603b341137342b9254f15deb1";
    const ARGS: &str = r#"{"title":"障害報告","body":"ログイン不可","request_id":"night-001"}"#;

    fn night_001() -> Row {
        let mut e = effect("night-001", "障害報告");
        e.columns = vec![
            ("title".into(), r#""障害報告""#.into()),
            ("body".into(), r#""ログイン不可""#.into()),
            ("created_at".into(), "1795963550.6".into()),
        ];
        Row {
            args_hash: Some(NIGHT_001.into()),
            effects: vec![e],
            ..row("night-001", "done", "A", 1.0)
        }
    }

    #[test]
    fn equal_different_and_not_checked() {
        let proof = Proof { recipe: Recipe::Python, request_id: "night-002".into() };
        let word = |args, hash, proof| check(args, hash, &Shape::default(), proof).check;
        assert_eq!(word(Some(ARGS), Some(NIGHT_001), None), HashCheck::Equal);
        let other = Some(r#"{"title":"障害報告","body":""}"#);
        assert_eq!(word(other, Some(NIGHT_001), None), HashCheck::DiffersUnproven);
        assert_eq!(word(other, Some(NIGHT_001), Some(&proof)), HashCheck::DiffersProven);
        assert_eq!(word(None, Some(NIGHT_001), Some(&proof)), HashCheck::NotChecked);
        assert_eq!(word(Some(ARGS), None, Some(&proof)), HashCheck::NotChecked);
        assert_eq!(word(Some("[1]"), Some(NIGHT_001), Some(&proof)), HashCheck::NotChecked);
    }

    #[test]
    fn undeclared_arguments_are_what_a_server_drops() {
        let sent = r#"{"title":"障害報告","body":"ログイン不可","priority":3}"#;
        let declared = shape(r#"{"request_id":{},"title":{},"body":{}}"#);
        let word = |shape: &Shape| check(Some(sent), Some(NIGHT_001), shape, None).check;
        assert_eq!(word(&declared), HashCheck::Equal);
        assert_eq!(word(&Shape::default()), HashCheck::DiffersUnproven);
    }

    fn shape(properties: &str) -> Shape {
        let tool = format!(r#"{{"name":"t","inputSchema":{{"properties":{properties}}}}}"#);
        Shape::of(&Tool::parse(&tool).unwrap())
    }

    #[test]
    fn what_a_server_may_add_or_respell_is_no_conflict() {
        let proof = Proof { recipe: Recipe::Python, request_id: "other".into() };
        let stored = |args: &str| Recipe::Python.hash(args).unwrap();
        for (properties, sent, took_in, want) in [
            // FastMCP: `body: str = ""`.
            (
                r#"{"title":{"type":"string"},"body":{"type":"string","default":""}}"#,
                r#"{"title":"a","x":1}"#,
                r#"{"title":"a","body":""}"#,
                HashCheck::Equal,
            ),
            (
                r#"{"title":{"type":"string"},"body":{"type":"string","default":""}}"#,
                r#"{"title":"a"}"#,
                r#"{"title":"b","body":""}"#,
                HashCheck::DiffersProven,
            ),
            (
                r#"{"title":{"type":"string"},"body":{"type":"string"}}"#,
                r#"{"title":"a"}"#,
                r#"{"title":"a","body":"?"}"#,
                HashCheck::DiffersUnproven,
            ),
            (
                r#"{"amount":{"type":"number"}}"#,
                r#"{"amount":100}"#,
                r#"{"amount":100.0}"#,
                HashCheck::DiffersUnproven,
            ),
            (
                r#"{"amounts":{"type":"array","items":{"type":"number"}}}"#,
                r#"{"amounts":[1.5, 2]}"#,
                r#"{"amounts":[1.5, 2.0]}"#,
                HashCheck::DiffersUnproven,
            ),
            (
                r#"{"amount":{"type":"number"},"note":{"type":"string"}}"#,
                r#"{"amount":100.5,"note":"7 \"8"}"#,
                r#"{"amount":200.5,"note":"7 \"8"}"#,
                HashCheck::DiffersProven,
            ),
        ] {
            let hash = stored(took_in);
            let got = check(Some(sent), Some(&hash), &shape(properties), Some(&proof));
            assert_eq!(got.check, want, "{properties} {sent}: {}", got.how);
        }
    }

    #[test]
    fn another_row_proves_the_recipe_and_the_same_one_never_does() {
        let rows = [night_001()];
        let by_effect = prove(&rows, &[], |_| Shape::default());
        assert_eq!(by_effect.len(), 1);
        assert_eq!(by_effect[0].request_id, "night-001");
        let second = Row { request_id: "second".into(), ..night_001() };
        let third = Row { request_id: "third".into(), ..night_001() };
        assert_eq!(
            prove([&rows[0], &rows[0], &second, &third], &[], |_| Shape::default()).len(),
            2
        );
        let bare = [Row { effects: Vec::new(), ..night_001() }];
        let mut c = call("night-001", 1, 0.0);
        c.args = Some(ARGS.into());
        assert_eq!(prove(&bare, &[&c], |_| Shape::default()).len(), 1);
        c.args = Some(r#"{"title":"x"}"#.into());
        assert_eq!(prove(&bare, &[&c], |_| Shape::default()), []);
    }

    #[test]
    fn the_effects_own_columns_give_the_arguments_back() {
        let r = night_001();
        let args = from_effect(&r.effects[0], Recipe::Python, NIGHT_001).unwrap();
        assert_eq!(args, r#"{"title": "障害報告", "body": "ログイン不可"}"#);
        assert_eq!(from_effect(&r.effects[0], Recipe::Python, &"0".repeat(64)), None);
        // Many columns: the whole, or one too many.
        let mut wide = r.effects[0].clone();
        wide.columns = (0..12).map(|i| (format!("c{i}"), i.to_string())).collect();
        let all = object(wide.columns.iter().map(|(k, v)| (k.as_str(), v.as_str())));
        let hash = Recipe::Python.hash(&all).unwrap();
        wide.columns.insert(5, ("created".into(), "1".into()));
        assert_eq!(from_effect(&wide, Recipe::Python, &hash), Some(all));
    }
}
