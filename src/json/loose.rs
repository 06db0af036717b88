//! JSON as Python's `json.dumps` writes it by default: `NaN`, `Infinity` and `-Infinity` stand where numbers do. No JSON,
//! but what an agent sent so is a call all the same, and its server has read it.

/// `text` with each such word replaced by a number of the same length, so that a strict reader can take it apart; `None`
/// where there is none. What stands at a place of it stands at the same place of `text`.
pub fn loosened(text: &str) -> Option<String> {
    const WORDS: [(&str, &str); 2] = [("NaN", "0.0"), ("Infinity", "0.000000")];
    if !WORDS.iter().any(|(word, _)| text.contains(word)) {
        return None;
    }
    let mut out = String::with_capacity(text.len());
    let (mut rest, mut in_string, mut any) = (text, false, false);
    while let Some(c) = rest.chars().next() {
        let mut taken = c.len_utf8();
        if in_string && c == '\\' {
            taken += rest.chars().nth(1).map_or(0, char::len_utf8);
        } else if c == '"' {
            in_string = !in_string;
        } else if !in_string
            && let Some((word, number)) = WORDS.iter().find(|(word, _)| rest.starts_with(word))
        {
            out.push_str(number);
            rest = rest.get(word.len()..).unwrap_or_default();
            any = true;
            continue;
        }
        out.push_str(rest.get(..taken).unwrap_or_default());
        rest = rest.get(taken..).unwrap_or_default();
    }
    any.then_some(out)
}

/// What stands in `text` where `part` stands in `loose`, which was made of it.
pub fn at_the_place_of<'a>(text: &'a str, loose: &str, part: &str) -> Option<&'a str> {
    let from = (part.as_ptr() as usize).checked_sub(loose.as_ptr() as usize)?;
    text.get(from..from.checked_add(part.len())?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::raw;

    #[test]
    fn words_of_python_are_numbers_and_texts_are_left_alone() {
        let text = r#"{"é":[NaN,-Infinity,Infinity],"t":"NaN \" Infinity","a":{"x":NaN}}"#;
        let loose = loosened(text).unwrap();
        assert_eq!(loose.len(), text.len());
        assert_eq!(raw::get(&loose, "é"), Some("[0.0,-0.000000,0.000000]"));
        assert_eq!(raw::get_str(&loose, "t").as_deref(), Some("NaN \" Infinity"));
        let args = raw::get(&loose, "a").unwrap();
        assert_eq!(at_the_place_of(text, &loose, args), Some(r#"{"x":NaN}"#));
        assert_eq!(loosened(r#"{"t":"NaN"}"#), None);
        assert_eq!(loosened("{}"), None);
        assert!(raw::members(&loosened("{\"a\":NaNa}").unwrap()).is_none());
    }
}
