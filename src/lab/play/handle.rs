//! The scenario of the handle that was made before a restart.

use super::super::policy;
use super::super::scenario::{Run, Scenario};
use super::Scene;
use crate::error::Result;
use crate::json::raw;

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
        self.detail = match (&whose, a.outcome) {
            (Some(whose), _) => format!(
                "flagged: {handle} was Mori's before the restart; the item went into {whose}'s basket, and no error told"
            ),
            (None, outcome) => format!("flagged: {handle} is gone after the restart ({outcome})"),
        };
        let expected = rebound.then(|| "Sato".to_owned());
        self.check(whose == expected, "the handle should be gone, or another's");
        self.attempts.push(a);
        self.lines.push(line);
        Ok(self.finish(scenario, effects).await)
    }
}
