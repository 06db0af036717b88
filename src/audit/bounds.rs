//! What an audit no longer knows, because a trace had more of it than is kept: what is not found of it may have been
//! there, and that is said.

/// One kind of thing of which not all is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Forgot {
    /// Calls that waited for their answer while too many others did.
    Waiting,
    /// Exchanges that were open while too many others were.
    Exchanges,
    /// JSON-RPC ids of long ago.
    Ids,
    /// request_ids of long ago, with their arguments.
    Requests,
    /// Calls that the server wanted more input for.
    Rounds,
    /// Calls whose id was used again.
    Shadowed,
    /// Calls whose outcome stayed unknown.
    Unknown,
    /// Values that could have come back.
    Values,
}

impl Forgot {
    /// For people: what is not told because of it.
    pub fn words(self) -> &'static str {
        match self {
            Forgot::Waiting => {
                "so many calls waited at once that the oldest were let go: their answers are not told"
            }
            Forgot::Exchanges => {
                "so many HTTP exchanges were open at once that older ones were let go: what came on them is not told"
            }
            Forgot::Ids => {
                "there were so many JSON-RPC ids that the older ones are not kept: one that came again is not told"
            }
            Forgot::Requests => {
                "there were so many request_ids that the oldest are not kept: one that came again with other arguments is not told"
            }
            Forgot::Rounds => {
                "so many calls waited for input that the oldest were let go: how they ended is not told"
            }
            Forgot::Shadowed => {
                "so many ids were used again while they waited that not all calls are kept: some that were never answered are not told"
            }
            Forgot::Unknown => {
                "so many calls have no known outcome that not all are kept: what became of some is not told"
            }
            Forgot::Values => {
                "there were so many values that not all are kept: what comes back of the others is not proposed"
            }
        }
    }
}
