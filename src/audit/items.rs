//! A JSON list cut into its items as its bytes come in: only the item at hand is kept. What an item holds is its
//! reader's affair.

/// The longest item that is kept.
const LONGEST: usize = 128 << 20;

/// Where the cutting stands.
#[derive(Debug, Clone, Default)]
pub struct Items {
    item: Vec<u8>,
    number: u64,
    /// Brackets open inside the item.
    depth: usize,
    in_string: bool,
    escaped: bool,
    /// 0: before `[`, 1: inside, 2: after `]`.
    place: u8,
    /// Something stands behind the list's end.
    trailing: bool,
}

impl Items {
    /// Takes bytes in; hands over each item that is whole, with its number from 1.
    pub fn feed(&mut self, bytes: &[u8], each: &mut impl FnMut(u64, &[u8])) {
        for b in bytes {
            match self.place {
                0 => self.place = u8::from(*b == b'['),
                1 => self.inside(*b, each),
                _ => self.trailing |= !b.is_ascii_whitespace(),
            }
        }
    }

    fn inside(&mut self, b: u8, each: &mut impl FnMut(u64, &[u8])) {
        if self.in_string {
            self.keep(b);
            (self.in_string, self.escaped) = match b {
                _ if self.escaped => (true, false),
                b'\\' => (true, true),
                b'"' => (false, false),
                _ => (true, false),
            };
            return;
        }
        match b {
            b',' | b']' if self.depth == 0 => {
                self.whole(b == b',', each);
                if b == b']' {
                    self.place = 2;
                }
                return;
            }
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' => self.depth = self.depth.saturating_sub(1),
            b'"' => self.in_string = true,
            _ if b.is_ascii_whitespace() && self.item.is_empty() => return,
            _ => {}
        }
        self.keep(b);
    }

    /// Of an item without an end only so much: what is missing of it makes it one that can't be read.
    fn keep(&mut self, b: u8) {
        if self.item.len() < LONGEST {
            self.item.push(b);
        }
    }

    fn whole(&mut self, expected: bool, each: &mut impl FnMut(u64, &[u8])) {
        // An empty list has no item; a comma has one before it.
        if !self.item.is_empty() || expected {
            self.number += 1;
            each(self.number, self.item.trim_ascii());
            self.item.clear();
        }
    }

    /// What is left when no more bytes come: an item that was begun, or what stands behind the end.
    pub fn unfinished(&self) -> Option<(u64, &'static str)> {
        match self.place {
            1 => Some((self.number + 1, "the list has no end: torn")),
            2 if self.trailing => Some((self.number + 1, "more text after the list's end")),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(text: &str, step: usize) -> (Vec<String>, Option<u64>) {
        let (mut items, mut out) = (Items::default(), Vec::new());
        for piece in text.as_bytes().chunks(step) {
            items.feed(piece, &mut |_, b| out.push(String::from_utf8_lossy(b).into_owned()));
        }
        let left = items.unfinished().map(|(n, _)| n);
        (out, left)
    }

    #[test]
    fn items_are_whole_however_the_bytes_come() {
        let text = "\u{feff} [ {\"a\":\"],}\\\"\"},\n [1,[2]] , 3 ]\n";
        for step in [1, 2, 7, 1000] {
            let (items, left) = cut(text, step);
            assert_eq!(items, ["{\"a\":\"],}\\\"\"}", "[1,[2]]", "3"], "{step}");
            assert_eq!(left, None);
        }
        assert_eq!(cut("[]", 9), (vec![], None));
        assert_eq!(cut("[1,{\"a\":", 9), (vec!["1".into()], Some(2)));
        assert_eq!(cut("[1] x", 9), (vec!["1".into()], Some(2)));
    }
}
