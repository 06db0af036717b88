//! The arguments hash against a row's, and whether the recipe is proven for this ledger: it is once it
//! reproduces the hash of another row. Pure.

use crate::journal::Call;
use crate::judge::HashCheck;
use crate::ledger::hash::Recipe;
use crate::ledger::{Effect, Row};

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

/// A recipe, and which arguments it takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum How {
    All,
    Declared,
}

/// Whether `args` have `row_hash`: by all arguments, else by those that `declared` names (servers drop
/// what their schema does not declare before they hash). Empty `declared` means that nobody knows.
fn reproduces(recipe: Recipe, args: &str, declared: &[String], row_hash: &str) -> Option<How> {
    if recipe.hash(args).is_ok_and(|h| h.eq_ignore_ascii_case(row_hash)) {
        return Some(How::All);
    }
    let by_schema = !declared.is_empty()
        && recipe.hash_declared(args, declared).is_ok_and(|h| h.eq_ignore_ascii_case(row_hash));
    by_schema.then_some(How::Declared)
}

/// Checks `args` against `row_hash`. `proof` of another request turns a difference into a fact.
pub fn check(
    args: Option<&str>,
    row_hash: Option<&str>,
    declared: &[String],
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
        if let Some(how) = reproduces(*recipe, args, declared, row_hash) {
            let which = match how {
                How::All => "all arguments",
                How::Declared => "the declared arguments only",
            };
            let how = format!("equal to the row's hash ({}, {which})", recipe.name());
            return Checked { check: HashCheck::Equal, how };
        }
    }
    match proof {
        Some(p) => Checked {
            check: HashCheck::DiffersProven,
            how: format!(
                "differs from the row's hash; the recipe ({}) reproduces that of {}",
                p.recipe.name(),
                p.request_id
            ),
        },
        None => Checked {
            check: HashCheck::DiffersUnproven,
            how: "differs from the row's hash; no other row shows that the server hashes this way"
                .into(),
        },
    }
}

/// Looks for a row other than `but` whose hash a recipe reproduces: from a call that was seen of it, or
/// from the columns of its effect. `declared` gives the properties of a tool by its name.
pub fn prove<'a>(
    rows: impl IntoIterator<Item = &'a Row>,
    calls: &[&Call],
    declared: impl Fn(&str) -> Vec<String>,
    but: &str,
) -> Option<Proof> {
    for row in rows.into_iter().filter(|r| r.request_id != but) {
        let Some(hash) = row.args_hash.as_deref().filter(|h| !h.is_empty()) else { continue };
        for recipe in Recipe::ALL {
            let by_call = calls
                .iter()
                .filter(|c| c.request_id.as_deref() == Some(row.request_id.as_str()))
                .filter_map(|c| Some((c.args.as_deref()?, c.tool.as_str())))
                .any(|(args, tool)| reproduces(*recipe, args, &declared(tool), hash).is_some());
            if by_call || row.effects.iter().any(|e| from_effect(e, *recipe, hash).is_some()) {
                return Some(Proof { recipe: *recipe, request_id: row.request_id.clone() });
            }
        }
    }
    None
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
        let word = |args, hash, proof| check(args, hash, &[], proof).check;
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
        let declared = ["request_id", "title", "body"].map(str::to_owned);
        assert_eq!(check(Some(sent), Some(NIGHT_001), &declared, None).check, HashCheck::Equal);
        assert_eq!(check(Some(sent), Some(NIGHT_001), &[], None).check, HashCheck::DiffersUnproven);
    }

    #[test]
    fn another_row_proves_the_recipe_and_the_same_one_never_does() {
        let rows = [night_001()];
        let by_effect = prove(&rows, &[], |_| Vec::new(), "other").unwrap();
        assert_eq!(by_effect.request_id, "night-001");
        assert_eq!(prove(&rows, &[], |_| Vec::new(), "night-001"), None);
        let bare = [Row { effects: Vec::new(), ..night_001() }];
        let mut c = call("night-001", 1, 0.0);
        c.args = Some(ARGS.into());
        assert!(prove(&bare, &[&c], |_| Vec::new(), "other").is_some());
        c.args = Some(r#"{"title":"x"}"#.into());
        assert_eq!(prove(&bare, &[&c], |_| Vec::new(), "other"), None);
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
