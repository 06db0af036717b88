//! Text that shares the bytes it came in, so that a 50 MB answer is kept once.

use bytes::Bytes;
use std::fmt;
use std::ops::Deref;

/// UTF-8 text cut out of a frame. Immutable; clones share it.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Text(Bytes);

impl Text {
    /// `part` as a piece of `frame`: shared when it lies inside of it, copied when it doesn't (a frame that was
    /// not UTF-8 was decoded into other bytes), and when it is so small a piece that it would keep much else alive.
    pub fn part(frame: &Bytes, part: &str) -> Text {
        let (base, at) = (frame.as_ptr() as usize, part.as_ptr() as usize);
        let small = frame.len() > 4096 && part.len() < frame.len() / 2;
        match at.checked_sub(base) {
            Some(from) if from + part.len() <= frame.len() && !small => {
                Text(frame.slice(from..from + part.len()))
            }
            _ => Text(Bytes::copy_from_slice(part.as_bytes())),
        }
    }
}

impl Deref for Text {
    type Target = str;
    fn deref(&self) -> &str {
        // Every way in took a `str`.
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}

impl From<&str> for Text {
    fn from(s: &str) -> Text {
        Text(Bytes::copy_from_slice(s.as_bytes()))
    }
}

impl From<String> for Text {
    fn from(s: String) -> Text {
        Text(s.into())
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self)
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_shares_its_frame_and_a_stranger_is_copied() {
        let frame = Bytes::from_static(br#"{"result":{"a":1}}"#);
        let whole = std::str::from_utf8(&frame).unwrap();
        let part = Text::part(&frame, &whole[10..17]);
        assert_eq!(&*part, r#"{"a":1}"#);
        assert_eq!(part.0.as_ptr(), frame[10..].as_ptr());
        let stranger = Text::part(&frame, "elsewhere");
        assert_eq!(&*stranger, "elsewhere");
    }
}
