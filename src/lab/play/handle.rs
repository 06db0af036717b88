//! The scenario of the handle that was made before a restart.

use super::super::scenario::{Run, Scenario};
use super::super::{keep, policy};
use super::Scene;
use crate::audit::{Audit, Kind, Options, Reader};
use crate::error::Result;
use crate::journal::Journal;
use crate::json::raw;
use crate::recording::import::Form;

impl Scene<'_> {
    pub(super) async fn lost_handle(
        mut self,
        scenario: &'static Scenario,
        rebound: bool,
    ) -> Result<Run> {
        let mut line = self.stage.other("baskets");
        let owner = |name: &str| format!(r#"{{"owner":"{name}"}}"#);
        let first = line.client().await?;
        let (a, _) = policy::attempt(&first, "create_basket", &owner("Mori"), 30.0).await?;
        let handle =
            a.answer.as_deref().and_then(|o| raw::get_str(o, "basket_id")).unwrap_or_default();
        self.attempts.push(a);
        first.close().await;
        let second = line.fresh().await?;
        if rebound {
            let (a, _) = policy::attempt(&second, "create_basket", &owner("Sato"), 30.0).await?;
            self.attempts.push(a);
        }
        let item = format!(r#"{{"basket_id":{},"sku":"book-42"}}"#, raw::quote(&handle));
        let (a, _) = policy::attempt(&second, "add_item", &item, 30.0).await?;
        let whose = a.answer.as_deref().and_then(|o| raw::get_str(o, "owner"));
        let effects = u64::from(a.outcome == "ok");
        let seen = match (&whose, a.outcome) {
            (Some(whose), _) => format!(
                "{handle} was Mori's before the restart; the item went into {whose}'s basket, and no error told"
            ),
            (None, outcome) => format!("{handle} is gone after the restart ({outcome})"),
        };
        let expected = rebound.then(|| "Sato".to_owned());
        self.check(whose == expected, "the handle should be gone, or another's");
        self.attempts.push(a);
        let flags = flags(&line.journals());
        let flag = if rebound { Kind::HandleRebound } else { Kind::LostHandle };
        self.check(flags.contains(&flag), "the audit should flag the handle");
        let words: Vec<&str> = flags.iter().map(|k| k.word()).collect();
        self.detail = format!("{seen}; redial audit flags {}", words.join(", "));
        self.lines.push(line);
        Ok(self.finish(scenario, effects).await)
    }
}

/// What the audit finds in these sessions, as it would in their recording.
fn flags(journals: &[Journal]) -> Vec<Kind> {
    let Ok(text) = keep::recording("baskets", journals, &Default::default()) else {
        return Vec::new();
    };
    let mut audit = Audit::new(Options::default());
    let mut reader = Reader::new(Form::Recording);
    for (n, line) in (1..).zip(text.lines()) {
        reader.line(n, line.as_bytes(), &mut |at, fact| audit.apply(at, fact));
    }
    audit.findings().counts().keys().copied().collect()
}
