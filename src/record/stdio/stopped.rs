//! Says that the kernel has stopped the server (by SIGSTOP, SIGTTIN), on stderr and in the recording: nothing else would
//! tell why it is silent.

use super::{GENERATION, Server};
use crate::journal::generation::{GOES_ON, stopped_words};
use crate::journal::{Kind, Note};
use crate::procs::Family;
use crate::record::recorder::Recorder;
use crate::text;
use std::fs::File;
use std::io::Write;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// How often is looked.
const LOOK: Duration = Duration::from_millis(250);

/// Looks until the server has ended; says it to `voice` while that is open.
pub(super) fn watch(
    server: Arc<Server>,
    family: Arc<Family>,
    recorder: Recorder,
    voice: Weak<File>,
) {
    let look = move || {
        let (mut seen, mut told) = (None, None);
        loop {
            std::thread::sleep(LOOK);
            let now = family.stopped();
            // Who is killed while it is stopped doesn't go on.
            if server.has_ended() {
                return;
            }
            // Told when it has lasted for two looks: some tools stop and go on many times a second.
            if now != told && (now == seen || now.is_none()) {
                recorder.event(GENERATION, Kind::Note(Note::Stopped { who: now.clone() }));
                let words = now.as_ref().map_or_else(|| GOES_ON.into(), stopped_words);
                if let Some(voice) = voice.upgrade() {
                    let line = format!("redial: {}\n", text::visible(&words));
                    (&*voice).write_all(line.as_bytes()).ok();
                }
                told.clone_from(&now);
            }
            seen = now;
        }
    };
    // Without a thread more nobody says it; traffic passes all the same.
    std::thread::Builder::new().name("stopped".into()).spawn(look).ok();
}
