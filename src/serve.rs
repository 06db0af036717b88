//! The built-in MCP servers, `redial serve tickets|charge`: something real to attach to, to kill and to
//! count after.
//!
//! Each layer knows only the ones before it: `stop` (the end of the process), `faults` (what it is told to do wrong), `store` (the article's ledger),
//! `tool` (what a server offers), `tickets` and `charge` (the two offers), `mcp` (JSON-RPC text to JSON-RPC
//! text), `stdio` and `http` (bytes). Nothing here knows redial's client, journal or verdicts.

mod baskets;
mod charge;
mod faults;
pub(crate) mod headers;
mod http;
mod mcp;
mod pending;
mod sessions;
mod stdio;
mod stop;
mod store;
mod tickets;
mod tool;

pub use charge::ChargeOptions;
pub use faults::{Faults, KillPoint};
pub(crate) use http::loopback;
pub use tickets::TicketOptions;

use crate::error::{Error, Exit, Result};
use crate::text::to_stderr as log;
use std::sync::Arc;
use std::time::Duration;
use stop::Stop;

/// How long calls in flight may still finish, and their answers be written, once the end was asked for.
const GRACE: Duration = Duration::from_millis(500);
/// The longest message taken, in bytes.
const MAX_MESSAGE: usize = 16 << 20;

/// What to serve, and where.
#[derive(Debug, Clone)]
pub struct ServeOptions {
    /// Which of the servers.
    pub offer: Offer,
    /// Streamable HTTP on this loopback `ADDRESS:PORT` (path `/mcp`, port 0: any free one); stdio if `None`.
    pub http: Option<String>,
    /// What goes wrong on purpose.
    pub faults: Faults,
}

/// The servers.
#[derive(Debug, Clone)]
pub enum Offer {
    /// `serve tickets`.
    Tickets(TicketOptions),
    /// `serve charge`.
    Charge(ChargeOptions),
    /// `serve baskets`: handles that a restart forgets.
    Baskets,
}

/// Serves until stdin ends (stdio), or SIGTERM or SIGINT. The end never waits for work: what sleeps then
/// is left as a crash would leave it (a claimed row stays `running`, and is taken over later), a
/// transaction that has begun is finished. After it returns, a call may still wait for a lock on its
/// thread, so the caller must not wait for the runtime's blocking threads without a limit.
///
/// # Errors
/// Exit 2: an address that is no loopback address, a time that is no time. Exit 5: the address can't be
/// listened on. Exit 6: the ledger or effects file can't be opened.
pub async fn run(options: ServeOptions) -> Result<Exit> {
    let stop = Stop::default();
    let address = options.http.as_deref().map(http::loopback).transpose()?;
    let server = Arc::new(match options.offer {
        Offer::Tickets(o) => {
            let tools = tickets::Tickets::open(o, stop.clone(), options.faults.clone())?;
            mcp::Server::new(tools, options.faults)
        }
        Offer::Charge(o) => {
            let tools = charge::Charge::open(o, stop.clone(), options.faults.clone())?;
            mcp::Server::new(tools, options.faults)
        }
        Offer::Baskets => mcp::Server::new(baskets::Baskets::default(), options.faults),
    });
    match address {
        Some(address) => http::run(server, stop, address).await?,
        None => stdio::run(server, stop).await?,
    }
    Ok(Exit::Good)
}

/// Asks the system to end this process when the thread that started it ends; where it can't, nothing is lost
/// but that.
pub fn die_with_parent() {
    #[cfg(target_os = "linux")]
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL)).ok();
}

/// `--work-seconds` and the like.
fn seconds(name: &str, value: f64) -> Result<Duration> {
    Duration::try_from_secs_f64(value)
        .map_err(|_| Error::usage(format!("{name} {value} is not a number of seconds from 0 up")))
}

/// As the article's server says it: the order of its lines against the client's is what matters.
fn log_cancel(id: &crate::wire::id::Id) {
    let id = id.to_json();
    log(&format!(
        "<<< INBOUND notifications/cancelled {{\"requestId\":{}}}",
        crate::text::visible(&id)
    ));
}

fn log_aborted(id: &crate::wire::id::Id) {
    let id = id.to_json();
    log(&format!("handler finishing {{\"reqId\":{},\"aborted\":true}}", crate::text::visible(&id)));
}

/// A random UUID of version 4 as 32 hex digits, Python's `uuid.uuid4().hex`.
fn uuid_hex() -> std::result::Result<String, getrandom::Error> {
    let mut b = [0u8; 16];
    getrandom::fill(&mut b)?;
    b[6] = b[6] & 0x0f | 0x40;
    b[8] = b[8] & 0x3f | 0x80;
    Ok(format!("{:032x}", u128::from_be_bytes(b)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uuids_have_pythons_form_and_differ() {
        let (a, b) = (uuid_hex().unwrap(), uuid_hex().unwrap());
        assert_eq!(a.len(), 32);
        assert_eq!(&a[12..13], "4");
        assert!(matches!(&a[16..17], "8" | "9" | "a" | "b"), "{a}");
        assert_ne!(a, b);
    }

    #[test]
    fn times_below_zero_or_no_numbers_are_usage_errors() {
        assert_eq!(seconds("--work-seconds", 0.5), Ok(Duration::from_millis(500)));
        for bad in [-1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(seconds("--work-seconds", bad).map_err(|e| e.exit), Err(Exit::Usage));
        }
    }
}
