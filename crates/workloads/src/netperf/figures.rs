//! From what clients and servers did to what the trial yields.

use super::plan::{Plan, Test};
use super::tally::{ClientTally, ServerTally};
use crate::clock::{elapsed_ns, seconds_between};
use crate::{Failure, Trial};
use stats::Histogram;

/// What the clients of one trial achieved, by whichever implementation.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Figures {
    /// Of each client, in the unit of the test: transactions per second, or 10^6 bits per second that arrived.
    pub throughputs: Vec<f64>,
    /// Of each client, 10^6 bits per second that its side sent, where the test has sides.
    pub sent: Vec<f64>,
    /// Of all clients together, in the window in which all were at work.
    pub sum: Option<f64>,
    /// In microseconds, by metric.
    pub latencies: Vec<(&'static str, f64)>,
    /// The part of the datagrams that did not arrive, in percent, where the test has that.
    pub lost_pct: Option<f64>,
}

impl Figures {
    /// Leaves a sample of every metric.
    ///
    /// # Errors
    /// When a figure is none.
    pub fn leave(&self, trial: &mut Trial) -> Result<(), Failure> {
        let throughput = stats::mean(&self.throughputs).map_err(undefined)?;
        trial.sample("throughput", throughput)?;
        // The spread of one client, and of clients that did nothing, is none.
        if self.throughputs.len() > 1
            && let Ok(spread_pct) = stats::cv_pct(&self.throughputs)
        {
            trial.sample("spread", spread_pct)?;
        }
        if let Some(sum) = self.sum {
            trial.sample("sum", sum)?;
        }
        if !self.sent.is_empty() {
            trial.sample("sent", stats::mean(&self.sent).map_err(undefined)?)?;
        }
        if let Some(lost_pct) = self.lost_pct {
            trial.sample("lost", lost_pct)?;
        }
        for (metric, latency_us) in &self.latencies {
            trial.sample(metric, *latency_us)?;
        }
        Ok(())
    }
}

fn undefined(error: stats::Undefined) -> Failure {
    Failure::Invariant(error.to_string())
}

/// Makes sure that what the servers counted is what the clients counted.
///
/// # Errors
/// With the first client and server that do not agree.
pub fn check(plan: &Plan, pairs: &[(ClientTally, ServerTally)]) -> Result<(), Failure> {
    for (index, (client, server)) in pairs.iter().enumerate() {
        let done = client.warm + client.done;
        let (sent, received, answered) = (client.sent, server.received, server.answered);
        let agree = match plan.test {
            Test::TcpStream => received == sent,
            Test::UdpStream => received <= sent,
            Test::TcpRr | Test::TcpCrr => sent == done && received == sent && answered == sent,
            Test::UdpRr if client.lost == 0 => sent == done && received == sent && answered == sent,
            Test::UdpRr => done <= answered && answered <= received && received <= sent,
        };
        if !agree {
            let unit = if plan.test.is_stream() { "bytes" } else { "requests" };
            return Err(Failure::Invariant(format!(
                "client {index} sent {sent} {unit} and saw {done} through, but its server received {received} and \
                 answered {answered}"
            )));
        }
    }
    Ok(())
}

/// The figures of a trial.
///
/// # Errors
/// When the clock went backwards.
pub fn figures(
    plan: &Plan,
    pairs: &[(ClientTally, ServerTally)],
    latencies: &Histogram,
) -> Result<Figures, Failure> {
    let mut figures = Figures::default();
    let (mut in_window, mut busy_ns, mut done, mut arrived) = (0, 0, 0, 0);
    for (client, server) in pairs {
        // As in the original a TCP stream takes until everything has arrived.
        let end_ns = if plan.test == Test::TcpStream { client.end_ns } else { client.stop_ns };
        let own_ns = elapsed_ns(client.start_ns, end_ns)?.max(1);
        let (amount, window_amount) = match plan.test.is_stream() {
            true => (server.received - server.warm, server.in_window),
            false => (client.done, client.in_window),
        };
        figures.throughputs.push(rate(plan, amount, own_ns as f64 / 1e9));
        if plan.test.is_stream() {
            figures.sent.push(rate(plan, client.done, own_ns as f64 / 1e9));
        }
        in_window += window_amount;
        busy_ns += client.busy_ns;
        done += client.sent;
        arrived += server.received;
    }
    let begin_ns = pairs.iter().map(|(client, _)| client.start_ns).max().unwrap_or(0);
    let over_ns = pairs.iter().map(|(client, _)| client.stop_ns).min().unwrap_or(0);
    let window_s = seconds_between(begin_ns, over_ns);
    figures.sum = (window_s > 0.0).then(|| rate(plan, in_window, window_s));
    if plan.test == Test::UdpStream && done > 0 {
        figures.lost_pct = Some((done - arrived) as f64 / done as f64 * 100.0);
    }
    let transactions = latencies.len();
    if !plan.test.is_stream() && transactions > 0 {
        figures.latencies = vec![("latency-mean", busy_ns as f64 / transactions as f64 / 1e3)];
        let range = latencies.range().map(|(min, max)| [("latency-min", min), ("latency-max", max)]);
        let percentiles = [("latency-p50", 50.0), ("latency-p90", 90.0), ("latency-p99", 99.0)]
            .map(|(metric, percent)| (metric, latencies.percentile(percent).unwrap_or(0)));
        let all = range.into_iter().flatten().chain(percentiles);
        figures.latencies.extend(all.map(|(metric, ns)| (metric, ns as f64 / 1e3)));
    }
    Ok(figures)
}

/// An amount over a time, in the unit of the test.
fn rate(plan: &Plan, amount: u64, time_s: f64) -> f64 {
    match plan.test.is_stream() {
        true => amount as f64 * 8.0 / 1e6 / time_s,
        false => amount as f64 / time_s,
    }
}
