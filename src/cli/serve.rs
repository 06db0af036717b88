//! `redial serve`: runs a built-in server until its stdin ends or a signal comes.

use super::args::{ServeArgs, ServerCommand};
use super::report::Done;
use crate::serve::{ChargeOptions, Offer, ServeOptions, TicketOptions, run as serve};

pub async fn run(a: ServeArgs) -> Done {
    let options = match a.server {
        ServerCommand::Tickets { http, ledger, work_seconds, wait_seconds, fail_title } => {
            ServeOptions {
                http,
                offer: Offer::Tickets(TicketOptions {
                    ledger,
                    work_seconds,
                    wait_seconds,
                    fail_title,
                }),
            }
        }
        ServerCommand::Charge { http, effects, work_seconds } => {
            ServeOptions { http, offer: Offer::Charge(ChargeOptions { effects, work_seconds }) }
        }
    };
    Ok(serve(options).await?)
}
