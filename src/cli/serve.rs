//! `redial serve`: runs a built-in server until its stdin ends or a signal comes.

use super::args::{ServeArgs, ServerCommand};
use super::report::Done;
use crate::serve::{ChargeOptions, Faults, Offer, ServeOptions, TicketOptions, run as serve};

pub async fn run(a: ServeArgs) -> Done {
    if a.die_with_parent {
        crate::serve::die_with_parent();
    }
    let (http, offer, fault) = match a.server {
        ServerCommand::Tickets { http, ledger, work_seconds, wait_seconds, fail_title, fault } => {
            let options = TicketOptions { ledger, work_seconds, wait_seconds, fail_title };
            (http, Offer::Tickets(options), fault)
        }
        ServerCommand::Charge { http, effects, work_seconds, fault } => {
            (http, Offer::Charge(ChargeOptions { effects, work_seconds }), fault)
        }
        ServerCommand::Baskets => (None, Offer::Baskets, Vec::new()),
    };
    let faults = Faults::parse(&fault)?;
    Ok(serve(ServeOptions { http, offer, faults }).await?)
}
