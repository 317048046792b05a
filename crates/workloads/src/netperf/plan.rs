use super::wire;
use crate::shared::{Semantics, semantics, warmup};
use crate::{Failure, Trial};
use experiment::Params;
use std::time::Duration;

/// What a client and its server do together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Test {
    /// Requests and responses over one TCP connection.
    TcpRr,
    /// Requests and responses as datagrams.
    UdpRr,
    /// A TCP connection for each request and its response.
    TcpCrr,
    /// Bytes over one TCP connection, one way.
    TcpStream,
    /// Datagrams, one way.
    UdpStream,
}

impl Test {
    /// The words of the parameter `test`.
    pub const WORDS: [&str; 5] = ["tcp_rr", "udp_rr", "tcp_crr", "tcp_stream", "udp_stream"];

    /// The word of this test.
    pub fn word(self) -> &'static str {
        match self {
            Test::TcpRr => "tcp_rr",
            Test::UdpRr => "udp_rr",
            Test::TcpCrr => "tcp_crr",
            Test::TcpStream => "tcp_stream",
            Test::UdpStream => "udp_stream",
        }
    }

    /// The test of this word; the default for any other.
    pub fn of(word: &str) -> Test {
        match word {
            "udp_rr" => Test::UdpRr,
            "tcp_crr" => Test::TcpCrr,
            "tcp_stream" => Test::TcpStream,
            "udp_stream" => Test::UdpStream,
            _ => Test::TcpRr,
        }
    }

    /// Whether bytes go one way only.
    pub fn is_stream(self) -> bool {
        matches!(self, Test::TcpStream | Test::UdpStream)
    }

    /// Whether it sends datagrams.
    pub fn is_udp(self) -> bool {
        matches!(self, Test::UdpRr | Test::UdpStream)
    }
}

/// The most that a datagram holds over IPv4.
pub const DATAGRAM_BYTES: u64 = 65_507;

/// What is to be done, as numbers.
#[derive(Debug, Clone)]
pub struct Plan {
    /// What a client and its server do together.
    pub test: Test,
    /// Clients, and as many servers.
    pub clients: usize,
    /// For how long each client works.
    pub runtime: Duration,
    /// For how long it works before that.
    pub warmup: Duration,
    /// Bytes of a request.
    pub request: usize,
    /// Bytes of a response.
    pub response: usize,
    /// Bytes that a stream's sender hands over at once.
    pub message: usize,
    /// Bytes that a stream's receiver asks for at once.
    pub receive: usize,
    /// Bytes of each socket buffer; 0 leaves them to the kernel.
    pub buffer: usize,
    /// Whether TCP sends small segments at once.
    pub nodelay: bool,
    /// The port of the first server, and so on upwards; 0 leaves them to the kernel.
    pub port: u16,
    /// Which traits of the original are kept.
    pub semantics: Semantics,
    /// The server loses every request or block of this number, counted from 1; 0 for none, except in tests that break
    /// the work. A datagram is not answered, anything else is not counted.
    pub lose_nth: u64,
}

impl Plan {
    /// The plan that `params` ask for, at the point of `trial`.
    pub fn new(params: &Params, trial: &Trial) -> Result<Plan, Failure> {
        let plan = Plan {
            test: Test::of(params.text("test")?),
            clients: trial.count()? as usize,
            runtime: Duration::from_secs_f64(params.decimal("runtime")?),
            warmup: warmup(params)?,
            request: params.count("request")? as usize,
            response: params.count("response")? as usize,
            message: params.count("message")? as usize,
            receive: params.count("receive")? as usize,
            buffer: params.count("buffer")? as usize,
            nodelay: params.flag("nodelay")?,
            port: params.count("port")? as u16,
            semantics: semantics(params)?,
            lose_nth: 0,
        };
        plan.check()?;
        Ok(plan)
    }

    fn check(&self) -> Result<(), Failure> {
        let datagrams: &[(&str, usize)] = match self.test {
            Test::UdpRr => &[("request", self.request), ("response", self.response)],
            Test::UdpStream => &[("message", self.message)],
            _ => &[],
        };
        for (name, bytes) in datagrams {
            if *bytes as u64 > DATAGRAM_BYTES {
                return Err(Failure::Refused(format!(
                    "{name}={bytes} is more than a datagram holds; take {DATAGRAM_BYTES} at the most"
                )));
            }
        }
        let last = usize::from(self.port) + self.clients.saturating_sub(1);
        if self.port != 0 && last > usize::from(u16::MAX) {
            return Err(Failure::Refused(format!(
                "the servers of {} clients need the ports {} to {last}, and 65535 is the last; take a lower port=, \
                 or leave it to the kernel with port=0",
                self.clients, self.port
            )));
        }
        Ok(())
    }

    /// The port for the server of an original: the one that was asked for, or one that nobody uses just now.
    ///
    /// # Errors
    /// When it is in use.
    pub fn free_port(&self) -> Result<u16, Failure> {
        let one = Plan { clients: 1, test: Test::TcpRr, buffer: 0, ..self.clone() };
        let endpoints = wire::endpoints(&one)?;
        Ok(endpoints.first().map_or(0, |endpoint| endpoint.address.port()))
    }

    /// The bytes of a datagram that carry its number: with strict semantics, as many as request and response both have
    /// room for.
    pub fn number_bytes(&self) -> usize {
        match self.semantics {
            Semantics::Original => 0,
            Semantics::Strict => self.request.min(self.response).min(size_of::<u64>()),
        }
    }
}
