//! `serve baskets` (hidden; for the lab): state behind a handle that lives in the process and is counted from 1, so
//! that after a restart a handle is gone, or names another basket.

use super::stop::Stopped;
use super::tool::{Outcome, Tool, ToolSet, string};
use crate::json::raw::quote;
use crate::wire::id::Id;
use std::sync::{Mutex, PoisonError};

#[derive(Default)]
pub struct Baskets {
    /// Owner and items of basket `b-1`, `b-2`, …
    all: Mutex<Vec<(String, Vec<String>)>>,
}

impl ToolSet for Baskets {
    fn name(&self) -> &'static str {
        "baskets"
    }

    fn tools(&self) -> &'static [Tool] {
        &TOOLS
    }

    fn call(&self, _id: &Id, tool: &str, arguments: &str) -> Result<Outcome, Stopped> {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let failed = |why: &str| Ok(Outcome::Failed(format!("Error executing tool {tool}: {why}")));
        if tool == "create_basket" {
            let Ok(owner) = string(arguments, "owner") else { return failed("owner is required") };
            all.push((owner, Vec::new()));
            return Ok(Outcome::Json(format!(r#"{{"basket_id": "b-{}"}}"#, all.len())));
        }
        let (Ok(id), Ok(sku)) = (string(arguments, "basket_id"), string(arguments, "sku")) else {
            return failed("basket_id and sku are required");
        };
        let place = id.strip_prefix("b-").and_then(|n| n.parse::<usize>().ok());
        let Some((owner, items)) = place.and_then(|n| all.get_mut(n.wrapping_sub(1))) else {
            return failed(&format!("unknown basket {id}"));
        };
        items.push(sku);
        Ok(Outcome::Json(format!(
            r#"{{"basket_id": {}, "owner": {}, "items": {}}}"#,
            quote(&id),
            quote(owner),
            items.len()
        )))
    }
}

static TOOLS: [Tool; 2] = [
    Tool {
        name: "create_basket",
        description: "Makes a basket; its basket_id is good as long as this process lives.",
        input_schema: r#"{"type":"object","properties":{"owner":{"type":"string"}},"required":["owner"]}"#,
        annotations: r#"{"readOnlyHint":false}"#,
    },
    Tool {
        name: "add_item",
        description: "Puts an item into a basket.",
        input_schema: r#"{"type":"object","properties":{"basket_id":{"type":"string"},"sku":{"type":"string"}},"required":["basket_id","sku"]}"#,
        annotations: r#"{"readOnlyHint":false}"#,
    },
];
