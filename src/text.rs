//! The one door for untrusted text: whatever a server, a ledger, a recording or stderr said is made
//! visible here before it reaches a terminal, a plain report or a title.
//!
//! Nothing is dropped silently, since an inspector that hides bytes lies: C0 becomes `^X`, DEL `^?`, a
//! byte that is no UTF-8 `<0x9B>`, and C1, bidi controls, zero-width characters, tags and line
//! separators their `<U+202E>` form. Widths are those of ratatui's cells. JSON output doesn't come
//! through here: it has escapes of its own.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::Write as _;
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Where a line ended in a text that is shown as one line: `^J` in a sentence is a riddle.
const NEW_LINE: char = '⏎';
/// Tab stops, counted from the start of the line.
const TAB: usize = 4;
/// Marks stacked on one base before the rest is spelled out: more would paint over other lines.
const MARKS: usize = 8;

/// `text` as one safe line: where lines end in it is shown as `⏎`. Idempotent; borrows when nothing is to be done.
pub fn visible(text: &str) -> Cow<'_, str> {
    if is_clean(text) { Cow::Borrowed(text) } else { Cow::Owned(escape(text)) }
}

/// `text` as safe lines, split at LF and CR LF (a lone CR is shown, as `^M`). Lazy: what is not taken
/// costs nothing.
pub fn visible_lines(text: &str) -> impl Iterator<Item = Cow<'_, str>> {
    text.split('\n').map(|line| visible(line.strip_suffix('\r').unwrap_or(line)))
}

/// [`visible`] for bytes of unknown encoding: what is no UTF-8 is shown byte by byte, `<0x9B>`.
pub fn visible_bytes(bytes: &[u8]) -> Cow<'_, str> {
    if let Ok(text) = std::str::from_utf8(bytes) {
        return visible(text);
    }
    let mut text = String::with_capacity(bytes.len() + 16);
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        for b in chunk.invalid() {
            let _ = write!(text, "<0x{b:02X}>");
        }
    }
    Cow::Owned(visible(&text).into_owned())
}

/// JSON text made visible without changing what it means: characters that would be hidden or obeyed become
/// `\u` escapes, which is the same JSON (they can only stand inside strings); tabs become two spaces, a
/// CR goes. For showing and editing arguments; line feeds are kept.
pub fn visible_json(text: &str) -> Cow<'_, str> {
    if text.split('\n').all(is_clean) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + text.len() / 4);
    for g in text.graphemes(true) {
        match g {
            "\t" => out.push_str("  "),
            "\r" => {}
            "\n" | "\r\n" => out.push('\n'),
            g if is_clean(g) || visible(g) == g => out.push_str(g),
            g => {
                for c in g.chars() {
                    if is_clean(c.encode_utf8(&mut [0; 4])) {
                        out.push(c);
                        continue;
                    }
                    for unit in c.encode_utf16(&mut [0; 2]) {
                        let _ = write!(out, "\\u{unit:04x}");
                    }
                }
            }
        }
    }
    Cow::Owned(out)
}

/// How many cells `text` takes, drawn by ratatui grapheme by grapheme. For text that came through
/// [`visible`] (control characters count 0 here).
pub fn width(text: &str) -> usize {
    if text.bytes().all(|b| (0x20..0x7f).contains(&b)) {
        return text.len();
    }
    text.graphemes(true).map(cell_width).sum()
}

/// An id where it is read: an empty one (a row may have NULL for it) is two quotes and not nothing.
pub fn named(id: &str) -> &str {
    if id.is_empty() { "\"\"" } else { id }
}

/// The beginning of `text` that can fill so many cells: a table or a screen need not look beyond it.
pub fn head(text: &str, cells: usize) -> &str {
    const BYTES_A_CELL: usize = 32;
    let most = cells.saturating_add(2).saturating_mul(BYTES_A_CELL);
    if text.len() <= most {
        return text;
    }
    let end = (0..=most).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    &text[..end]
}

/// `text` cut to `max` cells; when something is cut it ends with `ellipsis` (dropped where even that
/// doesn't fit). Never cuts a grapheme in two.
pub fn truncate<'a>(text: &'a str, max: usize, ellipsis: &str) -> Cow<'a, str> {
    let mark = width(ellipsis);
    let (mark, ellipsis) = if mark <= max { (mark, ellipsis) } else { (0, "") };
    let (mut used, mut keep) = (0, 0);
    for (at, g) in text.grapheme_indices(true) {
        let w = cell_width(g);
        if used + w > max {
            return Cow::Owned(format!("{}{ellipsis}", &text[..keep]));
        }
        used += w;
        if used + mark <= max {
            keep = at + g.len();
        }
    }
    Cow::Borrowed(text)
}

/// The end of `text` that takes at most `max` cells, behind `…` where something is cut: what is typed is seen where its
/// cursor is.
pub fn tail(text: &str, max: usize) -> Cow<'_, str> {
    if width(text) <= max {
        return Cow::Borrowed(text);
    }
    let (mut used, mut from) = (1, text.len());
    for (at, g) in text.grapheme_indices(true).rev() {
        used += cell_width(g);
        if used > max {
            break;
        }
        from = at;
    }
    Cow::Owned(format!("…{}", &text[from..]))
}

/// `text` cut (with `…`) or filled with spaces on the right to exactly `cells` cells.
pub fn pad(text: &str, cells: usize) -> String {
    let mut out = truncate(text, cells, "…").into_owned();
    let fill = cells.saturating_sub(width(&out));
    out.extend(std::iter::repeat_n(' ', fill));
    out
}

/// Like [`pad`], filled on the left: for numbers and ages.
pub fn pad_left(text: &str, cells: usize) -> String {
    let cut = truncate(text, cells, "…");
    format!("{}{cut}", " ".repeat(cells.saturating_sub(width(&cut))))
}

/// `text` broken into lines of at most `cells` cells, at spaces where there are any; at most `max` lines,
/// the last one then ending with `…`. For text that came through [`visible`].
pub fn wrap(text: &str, cells: usize, max: usize) -> Vec<String> {
    let cells = cells.max(2);
    let mut lines = Vec::new();
    let mut rest = text;
    while !rest.is_empty() && lines.len() < max {
        let (mut used, mut end, mut space) = (0, rest.len(), None);
        for (at, g) in rest.grapheme_indices(true) {
            let w = cell_width(g);
            // A cluster that is wider than the line has a line of its own: every line takes something.
            if used + w > cells && at > 0 {
                end = at;
                break;
            }
            used += w;
            if g == " " {
                space = Some(at);
            }
        }
        // Break at the last space, unless that wastes half of the line or the line ends there anyway.
        let at = match space {
            Some(s) if end < rest.len() && !rest[end..].starts_with(' ') && s * 2 > end => s,
            _ => end,
        };
        let (line, tail) = rest.split_at(at);
        rest = if end < rest.len() { tail.trim_start_matches(' ') } else { "" };
        if lines.len() + 1 == max && !rest.is_empty() {
            lines.push(format!("{}…", truncate(line, cells - 1, "")));
        } else {
            lines.push(line.trim_end_matches(' ').to_owned());
        }
    }
    if lines.is_empty() {
        lines.push(String::new());
    }
    lines
}

/// The width of one grapheme as ratatui's cells count it: half-width sound marks take a cell.
fn cell_width(g: &str) -> usize {
    g.width() + g.chars().filter(|c| matches!(c, '\u{FF9E}' | '\u{FF9F}')).count()
}

fn is_clean(text: &str) -> bool {
    text.chars().all(|c| {
        if c.is_ascii() { (' '..='~').contains(&c) } else { !is_hidden(c) && c.width() > Some(0) }
    })
}

/// Characters that take no part in what is read but change how it is read: always spelled out, but for
/// the joiner and selectors of an emoji. (Unicode 16: Bidi_Control, Default_Ignorable_Code_Point, Cf
/// without the visible Arabic signs, Zl, Zp.)
pub fn is_hidden(c: char) -> bool {
    matches!(c as u32,
        0x80..=0x9F | 0xAD | 0x34F | 0x61C | 0x115F..=0x1160 | 0x17B4..=0x17B5 | 0x180B..=0x180F
        | 0x200B..=0x200F | 0x2028..=0x202E | 0x2060..=0x206F | 0x3164 | 0xFE00..=0xFE0F | 0xFEFF
        | 0xFFA0 | 0xFFF0..=0xFFFB | 0x1BCA0..=0x1BCA3 | 0x1D173..=0x1D17A | 0xE0000..=0xE0FFF)
}

/// Blocks that hold the emoji; a few neighbours in them do no harm.
fn is_emoji(c: char) -> bool {
    matches!(c as u32,
        0xA9 | 0xAE | 0x203C | 0x2049 | 0x2122 | 0x2139 | 0x2194..=0x21AA | 0x231A..=0x23FF | 0x24C2
        | 0x25AA..=0x27BF | 0x2934..=0x2935 | 0x2B05..=0x2B55 | 0x3030 | 0x303D | 0x3297 | 0x3299
        | 0x1F000..=0x1FAFF)
}

fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 4 + 16);
    // The column is kept for tabs alone; text without one needn't be measured.
    let tabs = text.contains('\t');
    let mut column = 0;
    for g in text.graphemes(true) {
        let start = out.len();
        if matches!(g, "\n" | "\r\n") {
            out.push(NEW_LINE);
        } else if g == "\t" {
            out.extend(std::iter::repeat_n(' ', TAB - column % TAB));
        } else {
            escape_grapheme(g, &mut out);
        }
        if tabs {
            column += width(&out[start..]);
        }
    }
    out
}

fn escape_grapheme(g: &str, out: &mut String) {
    // A cluster without width would glue itself to the cell before it, a border for example.
    let floating = cell_width(g) == 0;
    // The last drawn character, unless something was spelled out since.
    let mut base: Option<char> = None;
    let mut marks = 0;
    let mut chars = g.chars().peekable();
    while let Some(c) = chars.next() {
        let keep = match c {
            '\0'..='\x1f' => {
                out.extend(['^', char::from(c as u8 + 0x40)]);
                continue;
            }
            '\x7f' => {
                out.push_str("^?");
                continue;
            }
            '\u{200D}' => base.is_some_and(is_emoji) && chars.peek().is_some_and(|n| is_emoji(*n)),
            '\u{FE0E}' | '\u{FE0F}' => {
                let keycap = |b: char| b.is_ascii_digit() || b == '#' || b == '*';
                let before = out.chars().next_back() == base;
                before
                    && base.is_some_and(|b| {
                        is_emoji(b) || (keycap(b) && chars.peek() == Some(&'\u{20E3}'))
                    })
            }
            c if is_hidden(c) => false,
            c if c.width() > Some(0) || matches!(c, '\u{FF9E}' | '\u{FF9F}') => {
                (base, marks) = (Some(c), 0);
                true
            }
            _ => {
                marks += 1;
                base.is_some() && marks <= MARKS && !floating
            }
        };
        if keep {
            out.push(c);
        } else {
            base = None;
            let _ = write!(out, "<U+{:04X}>", c as u32);
        }
    }
}

/// A long text by both its ends, with the number of characters between them on a line of its own: what stands last in
/// it matters as much as what stands first. At most some 1,200 characters and 18 lines; the text is still raw.
pub fn ends(text: &str) -> Cow<'_, str> {
    const HEAD: (usize, usize) = (800, 12);
    const TAIL: (usize, usize) = (400, 6);
    let head = text.char_indices().nth(HEAD.0).map_or(text.len(), |(at, _)| at);
    let lines = text.match_indices('\n').nth(HEAD.1 - 1).map_or(text.len(), |(at, _)| at);
    let head = head.min(lines);
    let tail = text.char_indices().rev().nth(TAIL.0 - 1).map_or(0, |(at, _)| at);
    let lines = text.rmatch_indices('\n').nth(TAIL.1 - 1).map_or(0, |(at, _)| at + 1);
    let tail = tail.max(lines);
    let hidden = text.get(head..tail).map_or(0, |t| t.chars().count());
    if hidden == 0 {
        return Cow::Borrowed(text);
    }
    let (head, tail) = (&text[..head], &text[tail..]);
    Cow::Owned(format!("{head}\n… {hidden} characters are not shown …\n{tail}"))
}

/// One line on stderr, in one piece: whoever reads it never has half of it. A closed stderr is no reason to fail.
pub fn to_stderr(line: &str) {
    let _ = std::io::stderr().lock().write_all(format!("{line}\n").as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use ratatui::buffer::Buffer;
    use ratatui::layout::Rect;
    use ratatui::text::Span;
    use ratatui::widgets::Widget;

    #[test]
    fn what_is_typed_is_cut_at_its_beginning() {
        for (text, cells, want) in
            [("abc", 3, "abc"), ("abcd", 3, "…cd"), ("夜夜夜", 4, "…夜"), ("ab", 0, "…")]
        {
            assert_eq!(tail(text, cells), want);
        }
    }

    #[test]
    fn hostile_text_is_shown_not_obeyed() {
        for (raw, want) in [
            ("plain 障害報告 café", "plain 障害報告 café"),
            ("\x1b]0;pwned\x07", "^[]0;pwned^G"),
            ("a\x7fb\0", "a^?b^@"),
            ("\u{9b}31m", "<U+009B>31m"),
            ("abc\u{202e}txt.exe", "abc<U+202E>txt.exe"),
            ("a\u{200b}b\u{feff}c\u{ad}d", "a<U+200B>b<U+FEFF>c<U+00AD>d"),
            ("x\u{e0041}\u{2028}y", "x<U+E0041><U+2028>y"),
            ("one\r\ntwo\n\nthree\r", "one⏎two⏎⏎three^M"),
            ("\u{301}start", "<U+0301>start"),
            ("a\u{200d}b", "a<U+200D>b"),
            ("漢\u{fe0f}", "漢<U+FE0F>"),
        ] {
            assert_eq!(visible(raw), want, "{raw:?}");
        }
        assert_eq!(visible_bytes(b"ok \x9b31m \xff \xe9\x9a"), "ok <0x9B>31m <0xFF> <0xE9><0x9A>");
        assert_eq!(visible_lines("a\r\nb\tc\rd\n").collect::<Vec<_>>(), ["a", "b   c^Md", ""]);
    }

    #[test]
    fn json_stays_the_same_json() {
        let raw = "{\"a\":\"x\u{202e}y\u{e0041}\u{9b} 障害 👩‍👧\",\r\n\t\"b\":1.0}";
        let shown = visible_json(raw);
        assert_eq!(shown, "{\"a\":\"x\\u202ey\\udb40\\udc41\\u009b 障害 👩‍👧\",\n  \"b\":1.0}");
        let read = |t: &str| serde_json::from_str::<serde_json::Value>(t).unwrap();
        assert_eq!(read(&shown), read(raw));
        assert!(matches!(visible_json("{\"a\":\n\"障害\"}"), Cow::Borrowed(_)));
    }

    #[test]
    fn real_writing_is_left_alone() {
        for s in ["👩‍👩‍👧 家族", "❤️ 1️⃣ 🏳️‍🌈 👍🏽", "ﾊﾞｸﾞ", "e\u{301}", "か\u{3099}", "한국어", "עברית"]
        {
            assert_eq!(visible(s), s);
        }
    }

    #[test]
    fn cutting_and_filling_count_cells() {
        assert_eq!(truncate("障害報告", 8, "…"), "障害報告");
        assert_eq!(truncate("障害報告", 7, "…"), "障害報…");
        assert_eq!(truncate("障害報告", 6, "…"), "障害…");
        assert_eq!(truncate("abc", 0, "…"), "");
        assert_eq!(truncate("漢字", 1, "…"), "…");
        assert_eq!(pad("障害", 6), "障害  ");
        assert_eq!(pad("障害報", 5), "障害…");
        assert_eq!(pad_left("12 s", 6), "  12 s");
        // A wide character that doesn't fit leaves a cell, which is filled.
        assert_eq!(width(&pad("a漢字", 3)), 3);
    }

    #[test]
    fn lines_break_at_spaces_and_within_long_words() {
        assert_eq!(wrap("the server process died", 12, 9), ["the server", "process died"]);
        assert_eq!(wrap("障害報告障害報告", 7, 9), ["障害報", "告障害", "報告"]);
        assert_eq!(wrap("aaaa bbbb cccc", 4, 2), ["aaaa", "bbb…"]);
        assert_eq!(wrap("", 4, 2), [""]);
    }

    /// How many cells ratatui fills when it draws `text`.
    fn drawn(text: &str) -> usize {
        let area = Rect::new(0, 0, 2000, 1);
        let mut buffer = Buffer::filled(area, ratatui::buffer::Cell::new("~"));
        Span::raw(text).render(area, &mut buffer);
        (0..2000).take_while(|x| buffer[(*x, 0)].symbol() != "~").count()
    }

    /// Text in which the troublesome is common.
    fn nasty() -> impl Strategy<Value = String> {
        let troublesome = prop::sample::select(
            "\0\t\n\r\x1b\x07\x7f\u{80}\u{9b}\u{ad}\u{200b}\u{200c}\u{200d}\u{200e}\u{202e}\u{2066}\u{2028}\u{fe0f}\u{feff}\
             \u{e0041}\u{301}\u{3099}\u{ff9e}ﾊ漢あ👩👧🏽❤1\u{20e3}🇯🇵لا\u{600}각ᄀ\u{1160}"
                .chars()
                .collect::<Vec<_>>(),
        );
        prop::collection::vec(
            prop_oneof![4 => troublesome, 2 => any::<char>(), 2 => prop::char::range(' ', '}')],
            0..40,
        )
        .prop_map(|cs| cs.into_iter().filter(|c| *c != '~').collect())
    }

    proptest! {
        #[test]
        fn nothing_hidden_comes_through(s in nasty()) {
            let out = visible(&s);
            prop_assert!(!out.contains(char::is_control), "{out:?}");
            for (i, c) in out.char_indices() {
                let emoji_part = matches!(c, '\u{200d}' | '\u{fe0e}' | '\u{fe0f}')
                    && out[..i].chars().next_back().is_some_and(|b| {
                        is_emoji(b) || b.is_ascii_digit() || b == '\u{fe0f}' || b == '#' || b == '*' || b.width() == Some(0)
                    });
                prop_assert!(!is_hidden(c) || emoji_part, "{c:?} in {out:?}");
            }
        }

        #[test]
        fn twice_is_once(s in nasty()) {
            let once = visible(&s).into_owned();
            prop_assert_eq!(visible(&once).into_owned(), once.clone());
            prop_assert_eq!(is_clean(&once) && matches!(visible(&once), Cow::Owned(_)), false);
        }

        #[test]
        fn widths_are_what_is_drawn(s in nasty()) {
            let out = visible(&s);
            prop_assert_eq!(width(&out), drawn(&out), "{:?}", out);
        }

        #[test]
        fn bytes_that_are_text_are_that_text(s in nasty(), b in prop::collection::vec(any::<u8>(), 0..40)) {
            prop_assert_eq!(visible_bytes(s.as_bytes()), visible(&s));
            prop_assert!(!visible_bytes(&b).contains(char::is_control));
        }

        #[test]
        fn cuts_fit(s in nasty(), max in 0usize..30) {
            let out = visible(&s);
            let cut = truncate(&out, max, "…");
            prop_assert!(width(&cut) <= max);
            prop_assert_eq!(width(&out) <= max, cut == out);
            prop_assert_eq!(width(&pad(&out, max)), max);
            prop_assert_eq!(width(&pad_left(&out, max)), max);
            let lines = wrap(&out, max, 1000);
            let fits = |l: &String| width(l) <= max.max(2) || l.graphemes(true).count() == 1;
            prop_assert!(lines.iter().all(fits), "{lines:?}");
            let squeeze = |t: &str| t.replace(' ', "");
            prop_assert_eq!(squeeze(&lines.concat()), squeeze(&out));
        }
    }

    #[test]
    fn long_text_shows_both_its_ends_and_counts_what_is_between() {
        assert_eq!(ends("short"), "short");
        let whole = "x".repeat(1_200);
        assert_eq!(ends(&whole), whole);
        let long = format!("HEAD{}TAIL", "日".repeat(10_000));
        let shown = ends(&long);
        assert!(shown.starts_with("HEAD") && shown.ends_with("TAIL"), "{shown}");
        assert!(shown.contains("\n… 8808 characters are not shown …\n"), "{shown}");
        let lines = (0..1_000).map(|n| format!("line {n}\n")).collect::<String>();
        let shown = ends(&lines);
        assert!(shown.contains("line 0\n") && shown.contains("line 999"), "{shown}");
        assert!(shown.contains("characters are not shown") && shown.lines().count() < 25);
    }
}
