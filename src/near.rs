//! Names that somebody may have meant.

/// How many are worth telling.
const TOLD: usize = 3;

/// Those of `names` that are a slip of the hand away from `typed`, or hold it, nearest first.
pub fn near<'a>(names: &[&'a str], typed: &str) -> Vec<&'a str> {
    let mut names = names.to_vec();
    names.sort_by_key(|n| strsim::levenshtein(n, typed));
    names.into_iter().filter(|n| is_near(n, typed)).take(TOLD).collect()
}

fn is_near(name: &str, typed: &str) -> bool {
    let slips = typed.chars().count().max(name.chars().count()) / 3;
    strsim::levenshtein(name, typed) <= slips.max(1)
        || (typed.chars().count() >= 3 && name.contains(typed))
}

/// The one that was probably meant: within a few slips.
pub fn nearest<'a>(word: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let slips = |n: &&str| strsim::damerau_levenshtein(n, word);
    let name = names.min_by_key(slips)?;
    (slips(&name) <= (word.chars().count() / 3).max(2)).then_some(name)
}
