//! What both faces ask for: reads the ledger and the session, and hands them to `model` and `judge`.
//!
//! `request` is one request with all its witnesses, `list` rows and counts, `totals` the whole ledger's
//! invariants, `budget` what following a ledger may cost, `tool` a tool by its name, `look` the server's own look-up,
//! `wanted` the filter of lists, `reissue` the repeat behind the gate, `release` the moment it is sent, `pick` with which
//! arguments. Nothing here prints or
//! draws; nothing here sends anything but a look-up and what a person confirmed.

pub mod audit;
pub mod budget;
pub mod light;
pub mod list;
pub mod look;
mod pick;
pub mod recorded;
pub mod reissue;
pub mod release;
pub mod request;
pub mod scan;
pub mod tool;
pub mod totals;
pub mod wanted;

use crate::client::Client;
use crate::error::{Error, Result};
use crate::judge::gate::HintOverride;
use crate::judge::{HashCheck, OwnerClaims, OwnerView, Rules};
use crate::ledger::{Ledger, Row, Stamp, Survey};
use crate::model::Histories;
use crate::model::hash::Proof;
use crate::model::pairing::FirstReads;
use crate::time::Time;
use std::collections::BTreeMap;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The witnesses at hand and how to judge them. Clones share what was seen.
#[derive(Clone)]
pub struct Inspector {
    /// The ledger, if one is attached.
    pub ledger: Option<Ledger>,
    /// The endpoint, if one is attached.
    pub client: Option<Client>,
    /// The agent's own session, if a recording of it is attached.
    pub recording: Option<recorded::Recorded>,
    /// What is assumed of the server.
    pub rules: Rules,
    /// Which row is meant where several have one id: `COLUMN=VALUE`, and all must be so.
    pub row: Vec<String>,
    /// The look-up tool's name.
    pub look_up: String,
    /// Only calls that the server calls read-only may leave.
    pub read_only: bool,
    /// The configuration's word on hints, by tool.
    pub hints: BTreeMap<String, HintOverride>,
    seen: Arc<Mutex<Seen>>,
}

/// What was seen of rows while this program ran.
#[derive(Default)]
pub(crate) struct Seen {
    /// Of which life of the ledger.
    life: u64,
    /// Since when that life is known; `None` for the first one. What was read, asked or sent before says nothing of it.
    pub since: Option<Time>,
    pub histories: Histories,
    /// When a request was last looked for and not there.
    pub absent: HashMap<String, Time>,
    /// What the ledger had right after each look-up.
    pub first_reads: FirstReads,
    /// How the arguments seen of a request compared with its row, when it was looked at: the list says the same.
    pub hashes: HashMap<String, HashCheck>,
    /// Rows that prove the recipe, and with which file and how many calls they were looked for.
    pub proofs: Option<((Stamp, usize), Vec<Proof>)>,
    /// What the last pass over the ledger taught.
    pub pass: Option<Pass>,
    /// When the server was last asked again who it is, and on which generation.
    pub asked_again: Option<(u32, std::time::Instant)>,
    /// Rows of every group of equal hashes, as that pass found them, with the time.
    pub groups: Option<(Time, Groups)>,
}

impl Seen {
    /// Whether a read that began then is of this ledger.
    pub fn holds(&self, read_at: Time) -> bool {
        self.since.is_none_or(|since| read_at >= since)
    }
}

/// Rows with equal hashes, by hash.
pub(crate) type Groups = Arc<HashMap<String, Vec<Row>>>;

/// What a pass over the ledger taught of its owners.
pub(crate) struct Pass {
    /// What the file looked like.
    stamp: Stamp,
    /// When.
    at: Time,
    /// How many rows there were; `u64::MAX` while the pass goes on.
    rows: u64,
    owners: Arc<OwnerView>,
}

/// On a ledger with more rows than this a pass over all owners is not made for every question.
const MANY_ROWS: u64 = 50_000;
/// Seconds for which what such a pass taught is taken for true.
const PASS_AGE_S: f64 = 30.0;

impl Inspector {
    /// With the default look-up tool and nothing overruled.
    pub fn new(ledger: Option<Ledger>, client: Option<Client>, rules: Rules) -> Inspector {
        Inspector {
            ledger,
            client,
            recording: None,
            rules,
            look_up: crate::model::lookup::LOOK_UP.to_owned(),
            row: Vec::new(),
            read_only: false,
            hints: BTreeMap::new(),
            seen: Arc::default(),
        }
    }

    /// What was seen of the ledger that lies there now: of another one, or of an older state of it, nothing holds.
    pub(crate) fn seen(&self) -> MutexGuard<'_, Seen> {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let life = self.ledger.as_ref().map_or(0, Ledger::life);
        if seen.life != life {
            *seen = Seen { life, since: Some(Time::now()), ..Seen::default() };
        }
        seen
    }

    /// The owners of the last pass, while they still hold: the file has not changed, or it is so large that a
    /// pass for each question would cost more than a newer owner noticed some seconds later.
    pub(crate) fn known_owners(&self) -> Option<Arc<OwnerView>> {
        let now = self.ledger.as_ref()?.stamp();
        let seen = self.seen();
        let pass = seen.pass.as_ref()?;
        let large = pass.rows > MANY_ROWS && pass.at.age_at(Time::now()) < PASS_AGE_S;
        let holds = (pass.stamp == now && !now.is_fresh()) || large;
        holds.then(|| pass.owners.clone())
    }

    /// The groups of equal hashes of a large ledger's last pass; a small one is asked anew each time.
    pub(crate) fn known_groups(&self) -> Option<Groups> {
        let seen = self.seen();
        let (at, groups) = seen.groups.as_ref()?;
        let large = seen.pass.as_ref()?.rows > MANY_ROWS;
        (large && at.age_at(Time::now()) < PASS_AGE_S).then(|| groups.clone())
    }

    pub(crate) fn know(&self, stamp: Stamp, rows: u64, owners: &Arc<OwnerView>) {
        self.seen().pass = Some(Pass { stamp, at: Time::now(), rows, owners: owners.clone() });
    }

    pub(crate) fn know_groups(&self, groups: &Groups) {
        self.seen().groups = Some((Time::now(), groups.clone()));
    }

    /// The configuration's word on a tool's hints.
    pub fn hint_override(&self, tool: &str) -> HintOverride {
        self.hints.get(tool).copied().unwrap_or_default()
    }

    /// The endpoint.
    ///
    /// # Errors
    /// Exit 2 when none is attached.
    pub fn client(&self) -> Result<&Client> {
        self.client
            .as_ref()
            .ok_or_else(|| Error::usage("no endpoint is attached; nothing was sent"))
    }
}

/// The owners of a pass as judgement wants them.
pub(crate) fn owner_view(pass: &Survey) -> OwnerView {
    let claims = pass.owners().into_iter();
    let view = OwnerView::new(
        claims
            .map(|s| OwnerClaims { owner: s.owner, first: s.first, last: s.last, claims: s.rows })
            .collect(),
    );
    // So many that not all are told apart: nobody can say which of them is the newest.
    if pass.more_owners { view.of_each_claim() } else { view }
}
