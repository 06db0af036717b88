//! The lab's scenarios as data: where each comes from, what to expect and why, and its cells. `play` plays them.

use super::policy::Attempt;
use crate::journal::Journal;

/// What a cell does; `play` knows how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Time out after 1 s, cancel, repeat and wait long enough.
    Timeout { http: bool },
    /// SIGKILL after the commit, restart, repeat.
    KilledAfterCommit,
    /// The step runs again because a ConnectionError follows the tool's return.
    Step { key_outside: bool },
    /// The step fails with a ValueError after the tool's return.
    OtherError,
    /// The answer is lost after the work; a client repeats by the tool's hints alone.
    Hinted,
    /// The answer is lost after the work; the repeat comes over a new connection.
    LostAnswer,
    /// The repeat arrives from another connection while the first still works.
    WhileWorking,
    /// The same request_id with other arguments.
    OtherArguments,
    /// The process died before the work; the claim stays behind.
    ClaimLeft,
    /// The repeat carries a new request_id.
    NewRequestId,
    /// Work longer than the server's wait.
    StillWorking,
    /// The server dies at its second call.
    DiesAtSecond,
    /// The HTTP session is lost.
    SessionLost { status: u16 },
    /// The server is busy twice.
    Busy { status: u16 },
    /// The call is answered with a JSON-RPC error.
    RpcError,
    /// A handle made before the restart.
    LostHandle { rebound: bool },
    /// The order of events around a timeout.
    Order,
}

/// One cell of the lab's table.
#[derive(Debug, Clone, Copy)]
pub struct Cell {
    /// The tool that is called.
    pub tool: &'static str,
    /// What differs from the scenario's other cells with this tool; may be empty.
    pub variant: &'static str,
    /// The policy that repeats.
    pub policy: &'static str,
    /// Calls that somebody meant to make.
    pub logical: u32,
    /// Effects that are expected.
    pub effects: u64,
    /// What is done.
    pub kind: Kind,
    /// 2026-07-28 has the same situation.
    pub modern: bool,
}

/// One situation of the articles.
#[derive(Debug)]
pub struct Scenario {
    /// The name on the command line.
    pub name: &'static str,
    /// The article it is from.
    pub from: &'static str,
    /// What happens, in one sentence.
    pub story: &'static str,
    /// What to expect, and why.
    pub why: &'static str,
    /// How long each attempt may take, in seconds.
    pub limits: &'static [f64],
    /// With which tools.
    pub cells: &'static [Cell],
}

/// What came out.
#[derive(Clone)]
pub struct Run {
    /// The scenario.
    pub scenario: &'static str,
    /// The cell.
    pub cell: Cell,
    /// The protocol revision that was spoken.
    pub protocol: String,
    /// What was sent, in order.
    pub attempts: Vec<Attempt>,
    /// Effects that were counted.
    pub effects: u64,
    /// Why it proved nothing, if so.
    pub void: Option<String>,
    /// What was not as it should be; empty when all was.
    pub wrong: Vec<String>,
    /// What else was seen.
    pub detail: String,
    /// What happened when, in seconds from the first line.
    pub timeline: Vec<(f64, String)>,
    /// What was on the wire.
    pub journals: Vec<Journal>,
}

impl Run {
    /// It counts, and everything was as expected.
    pub fn as_expected(&self) -> bool {
        self.void.is_none() && self.wrong.is_empty() && self.effects == self.cell.effects
    }
}

const fn cell(tool: &'static str, policy: &'static str, effects: u64, kind: Kind) -> Cell {
    Cell { tool, variant: "", policy, logical: 1, effects, kind, modern: true }
}

const fn legacy(mut cell: Cell) -> Cell {
    cell.modern = false;
    cell
}

const fn named(variant: &'static str, mut cell: Cell) -> Cell {
    cell.variant = variant;
    cell
}

const fn times(logical: u32, mut cell: Cell) -> Cell {
    cell.logical = logical;
    cell
}

/// All scenarios, in the order of the articles' claims.
pub static SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "timeout-stdio",
        from: "002",
        story: "The client waits 1 s, the work takes 3 s. It cancels, calls again, and waits long enough. On stdio.",
        why: "Cancelling stops the waiting, not the work. Without a key the second call is new work; with the same request_id it waits for the first and gets its result.",
        limits: &[1.0, 30.0],
        cells: &[
            cell("charge", "by-hand", 2, Kind::Timeout { http: false }),
            cell("create_ticket", "by-hand", 1, Kind::Timeout { http: false }),
        ],
    },
    Scenario {
        name: "killed-after-commit",
        from: "002",
        story: "The server is killed with SIGKILL after it has stored the work and before it answers. It is started again and called again. On stdio.",
        why: "The client sees a closed connection in both cases: work done, or not done. Both attempts carry the same JSON-RPC id, since ids start again; only a key in the arguments can tell the server that it is a repeat.",
        limits: &[30.0],
        cells: &[
            cell("charge", "by-hand", 2, Kind::KilledAfterCommit),
            cell("create_ticket", "by-hand", 1, Kind::KilledAfterCommit),
        ],
    },
    Scenario {
        name: "timeout-http",
        from: "002",
        story: "As timeout-stdio, over Streamable HTTP.",
        why: "The transport changes nothing: the work goes on when the client goes away.",
        limits: &[1.0, 30.0],
        cells: &[
            cell("charge", "by-hand", 2, Kind::Timeout { http: true }),
            cell("create_ticket", "by-hand", 1, Kind::Timeout { http: true }),
        ],
    },
    Scenario {
        name: "framework-step",
        from: "002",
        story: "A framework runs its step three times, because a ConnectionError follows the tool's return.",
        why: "Its default repeats connection errors (not value, type or runtime errors), and what it repeats is the step, not the call. A request_id helps only if it is made outside the step.",
        limits: &[30.0],
        cells: &[
            cell("charge", "framework", 3, Kind::Step { key_outside: true }),
            named(
                "request_id made outside the step",
                cell("create_ticket", "framework", 1, Kind::Step { key_outside: true }),
            ),
            named(
                "request_id made inside the step",
                cell("create_ticket", "framework", 3, Kind::Step { key_outside: false }),
            ),
            named("a ValueError instead", cell("charge", "framework", 1, Kind::OtherError)),
        ],
    },
    Scenario {
        name: "lost-answer",
        from: "000",
        story: "The work is done and the answer is lost on its way. The call is repeated over a new connection.",
        why: "The server has finished, the client can't know. With the same request_id the repeat gets the stored result and says replayed.",
        limits: &[30.0],
        cells: &[
            cell("charge", "by-hand", 2, Kind::LostAnswer),
            cell("create_ticket", "by-hand", 1, Kind::LostAnswer),
            named("as Claude Code repeats", cell("charge", "claude-code", 1, Kind::Hinted)),
            named("as Claude Code repeats", cell("create_ticket", "claude-code", 1, Kind::Hinted)),
        ],
    },
    Scenario {
        name: "while-working",
        from: "000",
        story: "The repeat arrives from another connection while the first call is still at work.",
        why: "The claim is a primary key in the ledger: one call does the work, the other waits for it and gets the same ticket.",
        limits: &[30.0],
        cells: &[
            cell("charge", "none", 2, Kind::WhileWorking),
            cell("create_ticket", "none", 1, Kind::WhileWorking),
        ],
    },
    Scenario {
        name: "other-arguments",
        from: "000",
        story: "The same request_id comes with other arguments.",
        why: "A key stands for one piece of work. The server compares the hash of the arguments and refuses; silently returning the first ticket would lose the second.",
        limits: &[30.0],
        cells: &[cell("create_ticket", "none", 1, Kind::OtherArguments)],
    },
    Scenario {
        name: "claim-left-behind",
        from: "000",
        story: "The process dies after it has claimed the request and before the work. The row stays running.",
        why: "The next process sees that the owner is not itself: find_request says abandoned, and a repeat with the same request_id takes the claim over and does the work once.",
        limits: &[30.0],
        cells: &[cell("create_ticket", "by-hand", 1, Kind::ClaimLeft)],
    },
    Scenario {
        name: "new-request-id",
        from: "000",
        story: "After an error the model calls again, and makes a new request_id.",
        why: "For the ledger that is other work. Nothing is broken, so only equal arguments under two request_ids tell: verify points at the pair.",
        limits: &[30.0],
        cells: &[cell("create_ticket", "by-hand", 2, Kind::NewRequestId)],
    },
    Scenario {
        name: "still-working",
        from: "000",
        story: "The work takes longer than the server lets a repeat wait.",
        why: "in_progress is an answer that says: not finished. Look it up, then call again with the same request_id.",
        limits: &[0.3, 30.0],
        cells: &[cell("create_ticket", "by-hand", 1, Kind::StillWorking)],
    },
    Scenario {
        name: "dies-at-second-call",
        from: "003",
        story: "The server exits with code 137 at its second call, FATAL on stderr. The night-batch client starts it again and goes on: three calls.",
        why: "All three are answered, and it looks well. But the effect was there before the death, and each repeat makes another one, unless the request_id says that it is a repeat.",
        limits: &[30.0],
        cells: &[
            times(3, cell("charge", "night-batch", 5, Kind::DiesAtSecond)),
            times(3, cell("create_ticket", "night-batch", 3, Kind::DiesAtSecond)),
        ],
    },
    Scenario {
        name: "session-lost",
        from: "003",
        story: "The server does not know the HTTP session any more. The client opens a new one and calls again.",
        why: "A call that was refused for its session was not run. 2026-07-28 has no sessions to lose.",
        limits: &[30.0],
        cells: &[
            named(
                "404",
                legacy(cell("create_ticket", "night-batch", 1, Kind::SessionLost { status: 404 })),
            ),
            named(
                "400",
                legacy(cell("create_ticket", "night-batch", 1, Kind::SessionLost { status: 400 })),
            ),
        ],
    },
    Scenario {
        name: "busy",
        from: "003",
        story: "The server is busy twice, then takes the call. Or it answers with a JSON-RPC error.",
        why: "429 and 503 are waited for, longer each time. A JSON-RPC error is an answer: the same call would fail the same way, so it is not repeated.",
        limits: &[30.0],
        cells: &[
            named("429", cell("create_ticket", "night-batch", 1, Kind::Busy { status: 429 })),
            named("503", cell("create_ticket", "night-batch", 1, Kind::Busy { status: 503 })),
            named(
                "a JSON-RPC error, then another call",
                times(2, cell("create_ticket", "night-batch", 1, Kind::RpcError)),
            ),
        ],
    },
    Scenario {
        name: "lost-handle",
        from: "004",
        story: "A basket's handle is made, the server is started again, and the handle is used.",
        why: "State behind a handle that lives in the process ends with it. Gone is the better case: where handles are counted from 1 again, the old one may point at somebody else's basket, without any error.",
        limits: &[30.0],
        cells: &[
            named(
                "gone",
                times(2, cell("add_item", "none", 0, Kind::LostHandle { rebound: false })),
            ),
            named(
                "points at something else",
                times(3, cell("add_item", "none", 1, Kind::LostHandle { rebound: true })),
            ),
        ],
    },
    Scenario {
        name: "order",
        from: "002",
        story: "What happens when, around the timeout of timeout-stdio.",
        why: "The client is told first; the cancellation reaches the server after that; and the handler finishes all the same.",
        limits: &[1.0],
        cells: &[cell("charge", "none", 1, Kind::Order)],
    },
];

/// The scenario of that name.
pub fn find(name: &str) -> Option<&'static Scenario> {
    SCENARIOS.iter().find(|s| s.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_policies_exist() {
        for (i, s) in SCENARIOS.iter().enumerate() {
            assert!(SCENARIOS[..i].iter().all(|o| o.name != s.name), "{}", s.name);
            assert!(!s.cells.is_empty() && !s.limits.is_empty());
            for c in s.cells {
                assert_eq!(super::super::policy::named(c.policy).name, c.policy);
            }
        }
    }
}
