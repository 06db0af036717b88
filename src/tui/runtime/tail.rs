//! Follows a file that holds the server's stderr, as `tail -F` does: from its last lines on, through rotation (another
//! file under the name) and truncation. Lines that begin with a time of day carry it; the others get the time at which
//! they were seen.
//!
//! Foreign bytes: kept as they are, made visible by whoever draws them.

use super::Hands;
use crate::time::Time;
use crate::tui::app::FileTail;
use crate::tui::msg::Msg;
use bytes::Bytes;
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufRead, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// How often the file is looked at.
const LOOK: Duration = Duration::from_millis(150);
/// Bytes read of what is there at first.
const FIRST: u64 = 256 << 10;
/// Bytes read at one look; a faster writer is caught up with at the next.
const LOOK_BYTES: u64 = 4 << 20;
/// Lines kept.
const KEEP: usize = 5_000;
/// Bytes of a line that are kept.
const LINE: usize = 4_096;

pub async fn follow(hands: Hands, path: PathBuf) {
    let mut tail = Tail::new(path);
    let mut told: Option<FileTail> = None;
    loop {
        let looked = tokio::task::spawn_blocking(move || {
            tail.look();
            tail
        });
        // The task is ended together with the screen.
        let Ok(back) = looked.await else { return };
        tail = back;
        if tail.moved || told.is_none() {
            tail.moved = false;
            let view = tail.view();
            told = Some(view.clone());
            hands.tell(Msg::StderrFile(Arc::new(view))).await;
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// What is known of the file.
struct Tail {
    path: PathBuf,
    file: Option<(File, u64)>,
    at: u64,
    /// The start of a line whose end hasn't come.
    part: Vec<u8>,
    lines: VecDeque<(Time, Bytes)>,
    dropped: u64,
    remark: Option<String>,
    moved: bool,
}

impl Tail {
    fn new(path: PathBuf) -> Tail {
        Tail {
            path,
            file: None,
            at: 0,
            part: Vec::new(),
            lines: VecDeque::new(),
            dropped: 0,
            remark: None,
            moved: false,
        }
    }

    fn view(&self) -> FileTail {
        FileTail {
            lines: self.lines.iter().cloned().collect(),
            dropped: self.dropped,
            remark: self.remark.clone(),
        }
    }

    /// Reads what has come since.
    fn look(&mut self) {
        if let Err(e) = self.read() {
            self.say(match e.kind() {
                io::ErrorKind::NotFound => "the file isn't there (yet); it is waited for".into(),
                _ => format!("the file can't be read: {e}"),
            });
        }
    }

    fn say(&mut self, words: String) {
        if self.remark.as_ref() != Some(&words) {
            (self.remark, self.moved) = (Some(words), true);
        }
    }

    fn read(&mut self) -> io::Result<()> {
        let there = std::fs::metadata(&self.path);
        let open = self.file.as_ref().map(|(f, ino)| (f.metadata().map(|m| m.len()), *ino));
        if let Some((len, ino)) = open {
            let len = len?;
            if len < self.at {
                self.at = 0;
                self.part.clear();
                self.say("the file was cut and begins anew".into());
            }
            self.take()?;
            let other = there.as_ref().is_ok_and(|m| m.ino() != ino);
            // The rest of the old file has been read: go over to the new one.
            if other
                && self
                    .file
                    .as_ref()
                    .is_some_and(|(f, _)| f.metadata().is_ok_and(|m| m.len() <= self.at))
            {
                self.file = None;
                self.end_part();
                self.open(0)?;
                self.say("the file was rotated; lines of both are shown".into());
                return self.take();
            }
            return Ok(());
        }
        let len = there?.len();
        self.open(len.saturating_sub(FIRST))?;
        self.remark = None;
        self.moved = true;
        self.take()
    }

    fn open(&mut self, at: u64) -> io::Result<()> {
        crate::files::ordinary(&self.path)?;
        let file = File::open(&self.path)?;
        let meta = file.metadata()?;
        if !meta.is_file() {
            return Err(io::Error::other("it is no regular file"));
        }
        (self.at, self.file) = (at, Some((file, meta.ino())));
        // The first line that is read from the middle is no whole one.
        if at > 0 {
            self.dropped = 1;
            if let Some((file, _)) = &mut self.file {
                file.seek(SeekFrom::Start(at))?;
                let mut skipped = Vec::new();
                io::BufReader::new(file).take(FIRST).read_until(b'\n', &mut skipped)?;
                self.at += skipped.len() as u64;
            }
        }
        Ok(())
    }

    fn take(&mut self) -> io::Result<()> {
        let Some((file, _)) = &mut self.file else { return Ok(()) };
        file.seek(SeekFrom::Start(self.at))?;
        let mut new = Vec::new();
        file.by_ref().take(LOOK_BYTES).read_to_end(&mut new)?;
        self.at += new.len() as u64;
        let now = Time::now();
        let mut rest = new.as_slice();
        while let Some(end) = rest.iter().position(|b| *b == b'\n') {
            self.part.extend_from_slice(&rest[..end.min(LINE)]);
            rest = &rest[end + 1..];
            self.push(now);
        }
        self.part.extend_from_slice(&rest[..rest.len().min(LINE)]);
        self.part.truncate(LINE);
        Ok(())
    }

    fn end_part(&mut self) {
        if !self.part.is_empty() {
            self.push(Time::now());
        }
    }

    fn push(&mut self, now: Time) {
        let mut line = std::mem::take(&mut self.part);
        if line.last() == Some(&b'\r') {
            line.pop();
        }
        line.truncate(LINE);
        let at = carried(&line).unwrap_or(now);
        self.lines.push_back((at, line.into()));
        if self.lines.len() > KEEP {
            self.lines.pop_front();
            self.dropped += 1;
        }
        self.moved = true;
    }
}

/// The time that a line begins with, where it is a whole one: RFC 3339, or date and time with a blank between, in UTC
/// where no zone is given; after an opening bracket too.
fn carried(line: &[u8]) -> Option<Time> {
    let head = &line[..line.len().min(40)];
    let text = std::str::from_utf8(head)
        .unwrap_or_else(|e| std::str::from_utf8(&head[..e.valid_up_to()]).unwrap_or_default());
    let text = text.trim_start_matches(['[', ' ']);
    // `2026-11-29T03:00:01…`
    let end = text
        .char_indices()
        .position(|(i, c)| !(c.is_ascii_digit() || "-:.,+TZ".contains(c) || (c == ' ' && i == 10)));
    let stamp = text.get(..end.unwrap_or(text.len()))?.trim_end_matches([',', ':', '-', '.', ' ']);
    if stamp.len() < 19 {
        return None;
    }
    let stamp = stamp.replacen(' ', "T", 1).replace(',', ".");
    let zoned = stamp.ends_with('Z') || stamp.get(19..).is_some_and(|t| t.contains(['+', '-']));
    let whole = if zoned { stamp } else { format!("{stamp}Z") };
    let t: jiff::Timestamp = whole.parse().ok()?;
    Some(Time(t.as_microsecond()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn lines(t: &Tail) -> Vec<String> {
        t.lines.iter().map(|(_, l)| String::from_utf8_lossy(l).into_owned()).collect()
    }

    #[test]
    fn a_file_is_followed_through_rotation_and_truncation() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("server.log");
        let mut tail = Tail::new(path.clone());
        tail.look();
        assert!(tail.remark.as_deref().unwrap().contains("isn't there"));
        let mut file = File::create(&path).unwrap();
        write!(file, "one\ntwo\r\nthr").unwrap();
        tail.look();
        assert_eq!(
            (lines(&tail), tail.remark.as_deref()),
            (vec!["one".into(), "two".into()], None)
        );
        writeln!(file, "ee").unwrap();
        tail.look();
        assert_eq!(lines(&tail)[2], "three");
        // What is written to the old file before the new one is looked at isn't lost.
        std::fs::rename(&path, folder.path().join("server.log.1")).unwrap();
        writeln!(file, "last").unwrap();
        std::fs::write(&path, "first of the new\n").unwrap();
        tail.look();
        assert_eq!(lines(&tail)[3..], ["last", "first of the new"]);
        assert!(tail.remark.as_deref().unwrap().contains("rotated"));
        std::fs::write(&path, "x\n").unwrap();
        tail.look();
        assert_eq!(lines(&tail).last().unwrap(), "x");
    }

    #[test]
    fn a_large_file_is_read_from_its_end_and_few_lines_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("big.log");
        let text: String = (0..100_000).map(|i| format!("line {i}\n")).collect();
        std::fs::write(&path, &text).unwrap();
        let mut tail = Tail::new(path);
        tail.look();
        assert_eq!((tail.lines.len(), lines(&tail).last().unwrap().as_str()), (KEEP, "line 99999"));
        assert!(lines(&tail).iter().all(|l| l.starts_with("line ")));
    }

    #[test]
    fn times_that_lines_carry_are_taken_and_nothing_else_is() {
        let at = |l: &str| carried(l.as_bytes()).map(|t| t.rfc3339());
        for l in [
            "2026-11-29T03:00:01Z boot",
            "2026-11-29 03:00:01 INFO boot",
            "[2026-11-29 03:00:01,000] boot",
            "2026-11-29T04:00:01+01:00 boot",
            "2026-11-29T03:00:01.000Z: boot",
        ] {
            let want = Time(1_795_921_201_000_000).rfc3339();
            assert_eq!(at(l), Some(want), "{l}");
        }
        for l in ["boot 2026", "", "12345678901234567890 x", "2026-13-29 03:00:01", "\u{e9}\u{e9}"]
        {
            assert_eq!(at(l), None, "{l}");
        }
    }
}
