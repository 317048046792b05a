//! The work: what each client and each server does, and what is measured of it.

use super::connection::{Client, Fault, Server};
use super::figures::{self, ClientFigures, Reading, Traffic};
use super::operation::{Exchange, Operation};
use super::phases::{Phase, Phases};
use crate::clock::now_ns;
use crate::process_crew::{self, Gate};
use crate::shared::{Semantics, semantics, warmup};
use crate::shared_memory::{Shared, SharedValue};
use crate::{Failure, Trial};
use experiment::{Params, counted};
use rustix::thread::futex;
use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

/// What is to be done.
#[derive(Debug)]
pub struct Plan {
    clients: usize,
    /// The messages of one pass, never empty.
    load: Vec<Exchange>,
    semantics: Semantics,
    warmup: Duration,
    runtime: Duration,
}

impl Plan {
    /// What `params` ask for, with the operations of `load`.
    pub fn new(params: &Params, load: &[Operation], trial: &Trial) -> Result<Plan, Failure> {
        let runtime = Duration::from_secs_f64(params.decimal("runtime")?);
        let (semantics, asked) = (semantics(params)?, warmup(params)?);
        // The original divides whole seconds: below five there is no warm-up.
        let own_warmup = Duration::from_secs(runtime.as_secs() / 5);
        Ok(Plan {
            clients: trial.count()? as usize,
            load: load.iter().filter_map(Operation::exchange).collect(),
            semantics,
            warmup: if semantics == Semantics::Original { asked.max(own_warmup) } else { asked },
            runtime,
        })
    }

    /// Does the work once and leaves its figures.
    pub fn run(&self, listener: &TcpListener, trial: &mut Trial) -> Result<(), Failure> {
        let count = self.clients;
        let memory = |error| {
            Failure::Refused(format!("no memory to share with {}: {error}", counted(count, "client")))
        };
        let address = listener
            .local_addr()
            .map_err(|error| Failure::Refused(format!("the servers have no address: {error}")))?;
        let clients = Shared::<ClientFigures>::new(count).map_err(memory)?;
        let servers = Shared::<Traffic>::new(count).map_err(memory)?;
        let phases = SharedValue::new(|| Phases::new(futex::Flags::empty())).map_err(memory)?;

        let body = |index: usize, gate: &Gate| {
            let worked = match (servers.get(index), clients.get(index.wrapping_sub(count))) {
                (Some(figures), _) => serve(listener, gate, &phases, figures),
                (None, Some(figures)) => self.replay(index - count, address, gate, &phases, figures),
                (None, None) => Ok(()),
            };
            if worked.is_err() {
                phases.end();
            }
            worked
        };
        let (start, end) = process_crew::run(2 * count, body, |gate| {
            gate.open();
            let mut goes_on = phases.rest(self.warmup);
            while goes_on && !clients.iter().all(ClientFigures::has_moved_bytes) {
                goes_on = phases.rest(Duration::from_millis(1));
            }
            phases.measure();
            let start = Reading::of(&clients);
            let _ = phases.rest(self.runtime);
            let end = Reading::of(&clients);
            phases.end();
            Ok((start, end))
        })?;
        figures::check(&clients, &servers)?;
        figures::leave(&clients, self.load.len(), &start, &end, trial)
    }

    /// What client `index` does.
    fn replay(
        &self,
        index: usize,
        address: SocketAddr,
        gate: &Gate,
        phases: &Phases,
        figures: &ClientFigures,
    ) -> Result<(), Failure> {
        let failed = |fault: Fault| {
            Failure::Invariant(format!("client {index}, after {} operations: {fault}", figures.operations()))
        };
        let mut client = Client::connect(address).map_err(failed)?;
        let first = match self.semantics {
            Semantics::Original => 0,
            Semantics::Strict => self.load.len() * index / self.clients,
        };
        if !gate.wait() {
            return Ok(());
        }
        work_off(&self.load, first, &mut client, phases, figures).map_err(failed)
    }
}

/// The measured loop of a client: the load from its operation `first` on, again and again.
fn work_off(
    load: &[Exchange],
    first: usize,
    client: &mut Client,
    phases: &Phases,
    figures: &ClientFigures,
) -> Result<(), Fault> {
    let mut phase = Phase::WarmUp;
    let mut before_ns = now_ns();
    for exchange in load.iter().cycle().skip(first) {
        match phases.now() {
            Phase::Over => break,
            now if now != phase => {
                phase = now;
                figures.forget_latencies();
                before_ns = now_ns();
            }
            _ => {}
        }
        if exchange.request > 0 {
            client.ask(exchange.request, exchange.answer)?;
        }
        let after_ns = now_ns();
        figures.record(exchange.kind, after_ns.saturating_sub(before_ns));
        figures.count(exchange);
        before_ns = after_ns;
    }
    Ok(())
}

/// What a server does.
fn serve(listener: &TcpListener, gate: &Gate, phases: &Phases, traffic: &Traffic) -> Result<(), Failure> {
    let failed = |fault: Fault| Failure::Invariant(format!("a server: {fault}"));
    let mut server = Server::accept(listener).map_err(failed)?;
    if !gate.wait() {
        return Ok(());
    }
    while let Some((request, answer)) = server.answer().map_err(failed)? {
        traffic.count(request, answer);
    }
    match phases.now() {
        Phase::Over => Ok(()),
        _ => Err(failed(Fault::HungUp)),
    }
}
