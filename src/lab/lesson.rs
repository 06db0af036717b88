//! The lessons as data: a story, steps that a person makes happen with a key, a question before the decisive one, why
//! it ended so, and one sentence to take home. `class` does the steps on real processes.

/// What a step does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Act {
    /// Start the server and connect.
    Start,
    /// Send the call.
    Send,
    /// Send the call; the server loses its answer.
    SendLost,
    /// SIGKILL to the server, now.
    Kill,
    /// Start the server again and connect.
    Restart,
    /// Ask `find_request`.
    Find,
    /// Call again with the same request_id.
    RetrySame,
    /// Call again with a new request_id (or, without one to give, once more).
    RetryNew,
    /// Stop waiting for the call, and tell the server.
    GiveUp,
}

impl Act {
    /// All that a free lesson offers, in the order of their keys on screen.
    pub const FREE: [Act; 8] = [
        Act::Send,
        Act::SendLost,
        Act::GiveUp,
        Act::Kill,
        Act::Restart,
        Act::Find,
        Act::RetrySame,
        Act::RetryNew,
    ];

    /// Its key.
    pub fn key(self) -> char {
        match self {
            Act::Start => 'o',
            Act::Send => 's',
            Act::SendLost => 'd',
            Act::Kill => 'k',
            Act::Restart => 'r',
            Act::Find => 'f',
            Act::RetrySame => 'a',
            Act::RetryNew => 'n',
            Act::GiveUp => 'c',
        }
    }

    /// What the key does, in words.
    pub fn words(self) -> &'static str {
        match self {
            Act::Start => "open: start the server",
            Act::Send => "send",
            Act::SendLost => "send, and drop the answer",
            Act::Kill => "kill -9 now",
            Act::Restart => "restart",
            Act::Find => "find_request",
            Act::RetrySame => "retry, same request_id",
            Act::RetryNew => "retry, new one",
            Act::GiveUp => "stop waiting",
        }
    }
}

/// When a step is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// The call has an outcome (or there is nothing to wait for).
    Settled,
    /// The work has begun and goes on.
    Working,
}

/// One step of a lesson.
#[derive(Debug, Clone, Copy)]
pub enum Step {
    /// Press its key, and it happens.
    Do {
        /// What.
        act: Act,
        /// What the person is told before.
        say: &'static str,
        /// When the next step comes.
        until: Until,
    },
    /// Press a digit: how many effects will there be in the end?
    Ask {
        /// The question.
        question: &'static str,
    },
}

/// One lesson.
#[derive(Debug)]
pub struct Lesson {
    /// The name on the command line.
    pub name: &'static str,
    /// What the menu says.
    pub title: &'static str,
    /// A few sentences.
    pub story: &'static str,
    /// `charge` or `create_ticket`.
    pub tool: &'static str,
    /// Over Streamable HTTP; else on stdio.
    pub http: bool,
    /// Seconds that the work takes.
    pub work_s: f64,
    /// What the server is told to do wrong.
    pub faults: &'static [&'static str],
    /// What happens; none: a free lesson.
    pub steps: &'static [Step],
    /// Effects in the end: the right answer to the question.
    pub effects: u64,
    /// Why.
    pub why: &'static str,
    /// One sentence.
    pub take_home: &'static str,
}

const fn act(act: Act, say: &'static str) -> Step {
    Step::Do { act, say, until: Until::Settled }
}

const START: Step = act(Act::Start, "First start the server.");

/// All lessons, in the order they build on each other; the last two are free.
pub static LESSONS: &[Lesson] = &[
    Lesson {
        name: "lost-answer",
        title: "No answer is not: not done",
        story: "A tool takes 100 from an account. The server does the work, and then the answer gets lost on its way. The client sees a broken connection, and tries again.",
        tool: "charge",
        http: true,
        work_s: 0.0,
        faults: &["drop-answer"],
        steps: &[
            START,
            act(Act::SendLost, "Send the charge. Its answer will be lost."),
            Step::Ask {
                question: "The client will send the charge again. How many charges will there be?",
            },
            act(Act::RetryNew, "Call again: this tool has no request_id to give."),
        ],
        effects: 2,
        why: "The work was done before the answer was lost. From the client's side \"done, answer lost\" and \"never done\" look the same.",
        take_home: "No answer does not mean not done.",
    },
    Lesson {
        name: "same-key",
        title: "What a request_id changes",
        story: "The same loss, but this tool takes a request_id. The server keeps a ledger: one row for each request_id, with the result.",
        tool: "create_ticket",
        http: true,
        work_s: 0.0,
        faults: &["drop-answer"],
        steps: &[
            START,
            act(Act::SendLost, "Send the call. Its answer will be lost."),
            Step::Ask {
                question: "The client will call again with the SAME request_id. How many tickets will there be?",
            },
            act(Act::RetrySame, "Call again with the same request_id."),
        ],
        effects: 1,
        why: "The ledger already has this request_id, and it is done. The server sends the stored result and says replayed: true.",
        take_home: "Same request, same request_id.",
    },
    Lesson {
        name: "new-key",
        title: "A new request_id is a new request",
        story: "An agent's model sees an error, and calls again. It makes up a fresh request_id, because the last call \"failed\".",
        tool: "create_ticket",
        http: true,
        work_s: 0.0,
        faults: &["drop-answer"],
        steps: &[
            START,
            act(Act::SendLost, "Send the call. Its answer will be lost."),
            Step::Ask {
                question: "The model will call again with a NEW request_id. How many tickets will there be?",
            },
            act(Act::RetryNew, "Call again with a new request_id."),
        ],
        effects: 2,
        why: "For the ledger the second call is other work: nothing is broken, so no error tells you. Only the equal arguments do: redial verify calls it a suspect pair.",
        take_home: "The key must be made before the first try, and kept.",
    },
    Lesson {
        name: "kill-in-work",
        title: "Killed in the middle of the work",
        story: "The server has claimed the request and works on it. Then its process dies. The row in the ledger says running, for ever.",
        tool: "create_ticket",
        http: false,
        work_s: 5.0,
        faults: &[],
        steps: &[
            START,
            Step::Do {
                act: Act::Send,
                say: "Send the call. The work takes 5 seconds.",
                until: Until::Working,
            },
            act(Act::Kill, "Quick: kill the server's process now."),
            act(Act::Restart, "Start it again."),
            act(Act::Find, "Ask the server what became of the request."),
            Step::Ask {
                question: "You will call again with the same request_id. How many tickets will there be?",
            },
            act(Act::RetrySame, "Call again with the same request_id."),
        ],
        effects: 1,
        why: "The row's owner is a process that is gone, so the new process may take the claim over. The work was never committed, so it is done now, once.",
        take_home: "Look it up first, then repeat with the same request_id.",
    },
    Lesson {
        name: "kill-after-commit",
        title: "Killed one moment later",
        story: "The charge again, on stdio. This time the process dies right after the work was stored, before it could answer. The protocol says: restart the server and retry.",
        tool: "charge",
        http: false,
        work_s: 0.0,
        faults: &["kill:after-commit", "once"],
        steps: &[
            START,
            act(Act::Send, "Send the charge. The server will die before it answers."),
            act(Act::Restart, "Start it again."),
            Step::Ask {
                question: "You will send the charge again. How many charges will there be?",
            },
            act(Act::RetryNew, "Send it again."),
        ],
        effects: 2,
        why: "\"The connection is stateless\" says nothing about the account. The effect was stored; the retry made another one.",
        take_home: "A protocol without state does not make your work repeatable.",
    },
    Lesson {
        name: "only-sessions",
        title: "\"Over HTTP only the session can be lost\"",
        story: "An article says: move to HTTP, and the only failure left is a lost session; open a new one and go on. The server here loses a session first. Then it loses an answer. Find out.",
        tool: "charge",
        http: true,
        work_s: 0.0,
        faults: &["lose-session:404", "drop-answer"],
        steps: &[
            START,
            act(Act::Send, "Send a charge. The server has forgotten the session: HTTP 404."),
            act(
                Act::SendLost,
                "That call was refused, so it did nothing. Send it in the new session: its answer will be lost.",
            ),
            Step::Ask {
                question: "No session was lost this time. You will send the charge again. How many charges will there be?",
            },
            act(Act::RetryNew, "Send it again, over a new connection."),
        ],
        effects: 2,
        why: "The lost session was the harmless one: a refused call was not run. The lost answer needs no lost session at all, and it made two charges.",
        take_home: "HTTP changes how a connection is lost, not what a lost answer means.",
    },
    Lesson {
        name: "give-up",
        title: "Cancelling stops the waiting, not the work",
        story: "The work takes 3 seconds, and the client loses its patience. It cancels, and the server is told. Then it calls again with the same request_id.",
        tool: "create_ticket",
        http: false,
        work_s: 3.0,
        faults: &[],
        steps: &[
            START,
            Step::Do {
                act: Act::Send,
                say: "Send the call. The work takes 3 seconds.",
                until: Until::Working,
            },
            act(Act::GiveUp, "Stop waiting: notifications/cancelled goes out."),
            Step::Ask {
                question: "The first call was cancelled. You will call again with the same request_id. How many tickets?",
            },
            act(Act::RetrySame, "Call again with the same request_id."),
        ],
        effects: 1,
        why: "The handler went on all the same. The second call found the claim, waited for it, and got the first one's ticket. Without a key there would be two.",
        take_home: "Cancelled is not undone.",
    },
    Lesson {
        name: "free",
        title: "Free: try what you like",
        story: "A ticket server on stdio whose work takes 3 seconds. All keys work at any time. What can you make happen? Can you get two tickets for one request?",
        tool: "create_ticket",
        http: false,
        work_s: 3.0,
        faults: &[],
        steps: &[],
        effects: 0,
        why: "",
        take_home: "",
    },
    Lesson {
        name: "free-http",
        title: "Free, over HTTP",
        story: "The same server over Streamable HTTP. Here a dropped answer breaks the connection at once, and the server lives on. All keys work at any time.",
        tool: "create_ticket",
        http: true,
        work_s: 3.0,
        faults: &[],
        steps: &[],
        effects: 0,
        why: "",
        take_home: "",
    },
];

/// The lesson of that name.
pub fn find(name: &str) -> Option<usize> {
    LESSONS.iter().position(|l| l.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_lesson_asks_once_before_its_last_step_and_acts_have_keys_of_their_own() {
        for l in LESSONS.iter().filter(|l| !l.steps.is_empty()) {
            let asked: Vec<usize> =
                (0..l.steps.len()).filter(|i| matches!(l.steps[*i], Step::Ask { .. })).collect();
            assert_eq!(asked, [l.steps.len() - 2], "{}", l.name);
            assert!(!l.take_home.is_empty() && !l.why.is_empty());
        }
        let keys: std::collections::HashSet<char> = Act::FREE.iter().map(|a| a.key()).collect();
        assert_eq!(keys.len(), Act::FREE.len());
        assert!(!keys.contains(&'q'));
    }
}
