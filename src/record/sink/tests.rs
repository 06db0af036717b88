use super::*;
use crate::record::entry::{Line, decode};
use std::sync::mpsc;

/// A disk that can be full: takes `room` bytes, then refuses until more room is made.
#[derive(Clone, Default)]
struct Disk(Arc<Mutex<(Vec<u8>, usize)>>);

impl Disk {
    fn with_room(room: usize) -> Disk {
        Disk(Arc::new(Mutex::new((Vec::new(), room))))
    }
    fn more(&self, room: usize) {
        self.0.lock().unwrap().1 += room;
    }
    fn lines(&self) -> Vec<Line> {
        let d = self.0.lock().unwrap();
        assert!(d.0.is_empty() || d.0.ends_with(b"\n"), "whole lines only");
        d.0.split(|b| *b == b'\n').filter(|l| !l.is_empty()).map(decode).collect()
    }
}

impl Write for Disk {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        let mut d = self.0.lock().unwrap();
        let n = buf.len().min(d.1);
        if n == 0 {
            return Err(io::ErrorKind::StorageFull.into());
        }
        d.1 -= n;
        d.0.extend_from_slice(&buf[..n]);
        Ok(n)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn event(seq: u64) -> Vec<u8> {
    let what = What::Event(crate::journal::Kind::Stderr { raw: format!("line {seq}").into() });
    line(&Entry::new(seq, Time(0), 0, 1, what)).into_bytes()
}

const LONG: Duration = Duration::from_secs(20);

#[test]
fn a_full_disk_costs_lines_that_are_counted_and_then_it_goes_on() {
    let one = event(1).len();
    let disk = Disk::with_room(2 * one + one / 2);
    let sink = Sink::start(disk.clone(), Instant::now()).unwrap();
    for seq in 1..=5 {
        sink.push(event(seq), seq, 1, false);
        sink.0.done.wait_timeout_while(sink.0.lock(), LONG, |s| s.written < seq).map(drop).unwrap();
    }
    disk.more(10_000);
    sink.submit(event(6), 6, 1, false);
    assert!(sink.close(LONG));
    let lines = disk.lines();
    let seqs: Vec<String> = lines
        .iter()
        .map(|l| match l {
            Line::Entry(Entry { seq, what: What::Gap { events, .. }, .. }) => {
                format!("gap of {events} from {seq}")
            }
            Line::Entry(e) => e.seq.to_string(),
            Line::Bad(_) => "torn".into(),
            other => format!("{other:?}"),
        })
        .collect();
    assert_eq!(seqs, ["1", "2", "torn", "gap of 3 from 3", "6"]);
    assert_eq!(sink.lost(), 3);
}

/// Blocks in its first write until it is told to go on.
struct Stuck(mpsc::Receiver<()>, Disk);

impl Write for Stuck {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.0.recv().ok();
        self.1.write(buf)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_blocking_disk_holds_traffic_up_once_and_loses_nothing_that_fits() {
    let (go, wait) = mpsc::channel();
    let disk = Disk::with_room(usize::MAX / 2);
    let sink = Sink::start(Stuck(wait, disk.clone()), Instant::now()).unwrap();
    let began = Instant::now();
    for seq in 1..=1000 {
        sink.submit(event(seq), seq, 1, false);
    }
    // One budget for all of them; far below one budget for each.
    assert!(began.elapsed() < BUDGET * 500, "{:?}", began.elapsed());
    drop(go);
    assert!(sink.close(LONG));
    assert_eq!(disk.lines().len(), 1000);
    assert_eq!(sink.lost(), 0);
}

#[test]
fn a_disk_that_never_comes_back_costs_a_bounded_wait_at_the_end() {
    let (_go, wait) = mpsc::channel();
    let sink = Sink::start(Stuck(wait, Disk::default()), Instant::now()).unwrap();
    sink.submit(vec![b'x'; QUEUE / 2], 1, 1, false);
    sink.submit(vec![b'x'; QUEUE / 2], 2, 1, false);
    sink.submit(vec![b'x'; QUEUE / 2], 3, 1, false);
    assert!(sink.lost() >= 1, "what doesn't fit the queue is counted");
    assert!(!sink.close(Duration::from_millis(20)));
}

#[test]
fn a_disk_that_stays_full_ends_all_the_same() {
    let sink = Sink::start(Disk::default(), Instant::now()).unwrap();
    sink.submit(event(1), 1, 1, false);
    assert!(!sink.close(LONG));
    assert_eq!(sink.lost(), 1);
}
