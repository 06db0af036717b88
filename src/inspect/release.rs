//! The moment of sending: everything is read again, held against what was agreed to, and only where nothing is another
//! thing by now the call leaves, once. What it changed is read after it.

use super::Inspector;
use super::reissue::{Prepared, Wish, stopped};
use super::request::Request;
use crate::error::{Error, Exit, Result};
use crate::journal::{Call, ToolList};
use crate::judge::Ask;
use crate::judge::agreement::{Change, Fact, Shown, Terms, Total};
use crate::judge::gate::Decision;
use crate::model::arguments::Source;
use crate::time::Time;
use std::time::{Duration, Instant};

/// Exactly what a person agreed to.
#[derive(Debug, Clone, Copy)]
pub struct Agreed<'a> {
    /// What was asked for.
    pub wish: &'a Wish,
    /// Where the arguments come from.
    pub source: &'a Source,
    /// The tool, the arguments, and every fact beside them.
    pub terms: &'a Terms,
    /// What was typed or pressed for.
    pub confirmed: Option<&'a str>,
    /// Somebody was shown the question and answered it: it may have stood for minutes.
    pub shown: bool,
    /// The server was asked about the request when it was prepared.
    pub looked: bool,
}

/// What came of an agreement.
#[derive(Debug, Clone)]
pub enum Release {
    /// The call left.
    Sent(Box<Released>),
    /// Something is another thing by now: nothing was sent, and the question has to be asked anew.
    Changed(Box<Anew>),
}

/// A question that has to be asked anew.
#[derive(Debug, Clone)]
pub struct Anew {
    /// As things stand now.
    pub prepared: Prepared,
    /// What is another thing than in the question before; never empty.
    pub changes: Vec<Change>,
}

/// A call that was sent, and what it changed.
#[derive(Debug, Clone)]
pub struct Released {
    /// The call, settled.
    pub call: Call,
    /// Everything known of the request right before it was sent.
    pub before: Request,
    /// Everything known of the request after.
    pub after: Request,
    /// The answer says that the stored result was returned.
    pub replayed: Option<bool>,
}

impl Released {
    /// The request has more than one effect now: how many. Whatever the answer said, its work ran more than once.
    pub fn twice(&self) -> Option<u64> {
        let known = !self.after.facts.request_id.is_empty() && self.after.facts.has_effects_table;
        Some(self.after.effects()).filter(|n| known && *n > 1 && !self.call.reads_only)
    }
}

impl Anew {
    /// Why nothing was sent, where nobody can be asked anew.
    pub fn error(&self) -> Error {
        let words: Vec<&str> = self.changes.iter().map(|c| c.words.as_str()).collect();
        let why = format!(
            "things have changed since it was looked at: {}; nothing was sent",
            words.join("; ")
        );
        Error::new(Exit::Gate, why).hint("look again, and decide anew")
    }

    /// Nothing is another thing but the connection, which was made anew.
    fn is_connection(&self) -> bool {
        self.changes.iter().all(|c| c.fact == Fact::Connection)
    }
}

impl Prepared {
    /// To be released as it was prepared. `shown`: a person was asked, and answered.
    pub fn agreed<'a>(&'a self, confirmed: Option<&'a str>, shown: bool) -> Agreed<'a> {
        let Prepared { wish, source, terms, looked, .. } = self;
        Agreed { wish, source, terms, confirmed, shown, looked: looked.is_some() }
    }
}

/// When the server is asked again who it is and what its tools are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Again {
    /// Unless it was a moment ago.
    Aged,
    /// In any case.
    Now,
}

/// What was listed so long ago is listed again for a question.
const AGED: Duration = Duration::from_secs(2);
/// How often a call is prepared for again where only the connection is another one.
const CONNECTIONS: usize = 3;

impl Inspector {
    /// The facts of a question about this call, and since when the row is what it is.
    pub fn terms(
        &self,
        tool: &str,
        args: &str,
        before: &Request,
        decision: &Decision,
    ) -> (Terms, Time) {
        let (tools, complete): (ToolList, bool) = self.listed();
        let (server, connection) = self.client.as_ref().map_or((None, 0), |c| {
            c.journal().read(|s| (s.server.clone(), s.generation().map_or(0, |g| g.n)))
        });
        let terms = Terms::new(&Shown {
            name: tool,
            args,
            facts: &before.facts,
            total: before.effects_total,
            decision,
            tool: tools.find(tool),
            list_complete: complete,
            server: server.as_ref(),
            connection,
        });
        let id = before.facts.request_id.as_str();
        let last = self.seen().histories.of(id).last().map(|s| s.at);
        (terms, last.unwrap_or(before.at))
    }

    /// Asks the server again who it is and what its tools are, wherever another one could have taken its place
    /// without a word: over HTTP.
    ///
    /// # Errors
    /// Exit 5 when it can't be told.
    pub async fn again(&self, when: Again) -> Result<()> {
        let client = self.client()?;
        client.ready().await?;
        if !client.endpoint().is_http() {
            return Ok(());
        }
        let (generation, opened) =
            client.journal().read(|s| s.generation().map_or((0, Time(0)), |g| (g.n, g.opened_at)));
        let asked =
            self.seen().asked_again.filter(|(n, at)| *n == generation && at.elapsed() < AGED);
        let fresh = asked.is_some() || opened.age_at(Time::now()) < AGED.as_secs_f64();
        if when == Again::Aged && fresh {
            return Ok(());
        }
        let began = Instant::now();
        client.look_again().await.map_err(|e| {
            Error::new(e.exit, format!("{}; nothing was sent", e.what)).hint(
                "the tools are listed again before a call, since another server may have taken its place",
            )
        })?;
        self.seen().asked_again = Some((generation, began));
        Ok(())
    }

    /// Sends exactly what was agreed to, once, and reads what it changed. A question may have stood for minutes:
    /// everything is read and decided again first.
    ///
    /// # Errors
    /// Exit 3 when the gate does not let it pass: nothing was sent.
    pub async fn release(&self, a: &Agreed<'_>) -> Result<Release> {
        let Agreed { wish, terms, .. } = *a;
        // What a person typed and nobody was asked about goes to whoever is there.
        if !wish.first_delivery || terms.ask != Some(Ask::None) || self.read_only {
            self.again(Again::Now).await?;
        }
        let id = wish.request_id.as_deref().filter(|_| a.shown && a.looked);
        let looked = match id {
            Some(id) => Some(self.look_up(id).await?),
            None => None,
        };
        let (args, source) = (terms.args.clone(), a.source.clone());
        let mut now = self.prepared(wish, &terms.tool, args, source, looked).await?;
        if !a.shown {
            // Nobody was told a number.
            now.terms.total = Total::Moving;
        }
        let changes = terms.changes(&now.terms, now.since);
        if !changes.is_empty() {
            now.terms = now.terms.after(terms);
            return Ok(Release::Changed(Box::new(Anew { prepared: now, changes })));
        }
        if !now.decision.passes(a.confirmed) {
            return Err(stopped(&now.decision));
        }
        self.send(now, wish.limit_s).await.map(|r| Release::Sent(Box::new(r)))
    }

    /// The same for drivers that show nothing: what was prepared in this very run is what they go by. Where only the
    /// connection was made anew meanwhile, what holds there is.
    ///
    /// # Errors
    /// Exit 3 when something else changed, too.
    pub async fn carry_out(
        &self,
        prepared: &Prepared,
        confirmed: Option<&str>,
    ) -> Result<Released> {
        let mut again: Option<Prepared> = None;
        for _ in 0..CONNECTIONS {
            let p = again.as_ref().unwrap_or(prepared);
            match self.release(&p.agreed(confirmed, false)).await? {
                Release::Sent(released) => return Ok(*released),
                Release::Changed(anew) if anew.is_connection() => again = Some(anew.prepared),
                Release::Changed(anew) => return Err(anew.error()),
            }
        }
        Err(Error::endpoint("the connection is made anew again and again; nothing was sent"))
    }

    async fn send(&self, now: Prepared, limit_s: Option<f64>) -> Result<Released> {
        let client = self.client()?;
        let (tool, args) = (&now.terms.tool, &now.terms.args);
        let id = client.call_on(now.terms.connection, tool, args, limit_s).await?;
        let Some(call) = client.settled(id).await else {
            let what = "the call is not in the journal: outcome unknown";
            return Err(Error::new(Exit::Unknown, what));
        };
        let request_id = call.request_id.clone().unwrap_or_default();
        let after = self.request(&request_id, Some(args)).await;
        let replayed = crate::judge::observed::replayed(&call);
        Ok(Released { call, before: now.before, after, replayed })
    }
}
