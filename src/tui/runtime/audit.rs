//! Audits the attached recording for the screen, once somebody asked: reads it piece by piece, and again what is new
//! as it grows.

use super::Hands;
use crate::audit::{Options, Severity};
use crate::error::Result;
use crate::inspect::audit::{Trace, contracts};
use crate::tui::findings::Audited;
use crate::tui::msg::Msg;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// How often the file is looked at when nothing is new.
const LOOK: Duration = Duration::from_millis(200);
/// Pieces of a large file between two copies for the screen, at most a megabyte each.
const PIECES: usize = 8;

struct Auditing {
    trace: Trace,
    contracts: Option<String>,
    trouble: Option<String>,
}

/// Waits until somebody asks, and then never stops: what is new is found as it comes.
pub async fn follow(hands: Hands, mut asked: watch::Receiver<bool>) {
    let Some(recording) = hands.inspector.recording.clone() else { return };
    if asked.wait_for(|on| *on).await.is_err() {
        return;
    }
    let (path, look_up) = (recording.path(), hands.inspector.look_up.clone());
    let opened = tokio::task::spawn_blocking(move || open(&path, look_up)).await;
    // The task is ended together with the screen.
    let Ok(opened) = opened else { return };
    let mut auditing = match opened {
        Ok(a) => Some(a),
        Err(e) => {
            let trouble = Some(e.to_string());
            hands.tell(Msg::Audited(Arc::new(Audited { trouble, ..Audited::default() }))).await;
            return;
        }
    };
    let mut before = None;
    loop {
        let Some(mut a) = auditing.take() else { return };
        let worked = tokio::task::spawn_blocking(move || {
            let more = a.pieces();
            let now = Some((a.trace.audit.events, a.trace.audit.bad, more));
            // Tens of thousands of findings are put into words for it.
            let told = (now != before).then(|| Arc::new(a.told(more)));
            (a, more, now, told)
        });
        let Ok((a, more, now, told)) = worked.await else { return };
        before = now;
        if let Some(told) = told {
            hands.tell(Msg::Audited(told)).await;
        }
        auditing = Some(a);
        if !more {
            tokio::time::sleep(LOOK).await;
        }
    }
}

fn open(path: &Path, look_up: String) -> Result<Auditing> {
    let here = std::env::current_dir().unwrap_or_default();
    // A contracts file with a mistake must not hide what can be inferred.
    let (agreed, trouble) = match contracts(None, &here) {
        Ok(agreed) => (agreed, None),
        Err(e) => (None, Some(e.to_string())),
    };
    let (file, agreed) = agreed.map_or((None, None), |(p, c)| (Some(p), Some(c)));
    let options = Options { contracts: agreed, look_up, ..Options::default() };
    let contracts = file.map(|p| p.display().to_string());
    Ok(Auditing { trace: Trace::open(path, options)?, contracts, trouble })
}

impl Auditing {
    /// Whether there is more to read.
    fn pieces(&mut self) -> bool {
        for _ in 0..PIECES {
            match self.trace.advance() {
                Ok(true) => {}
                Ok(false) => return false,
                Err(e) => {
                    self.trouble = Some(e.to_string());
                    return false;
                }
            }
        }
        true
    }

    fn told(&self, reading: bool) -> Audited {
        let (findings, all) = self.trace.findings();
        let mut marks: BTreeMap<u64, Severity> = BTreeMap::new();
        for f in findings.iter().filter(|f| f.seq > 0) {
            let mark = marks.entry(f.seq).or_insert(f.severity);
            *mark = f.severity.min(*mark);
        }
        let (makes, uses) = self.trace.audit.flows();
        Audited {
            total: all.total(),
            findings,
            calls: self.trace.audit.calls,
            makes,
            uses,
            contracts: self.contracts.clone(),
            marks,
            reading,
            trouble: self.trouble.clone(),
        }
    }
}
