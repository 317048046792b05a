//! A target whose agent measures nothing: it answers what the test tells it to. It boots, or does not.

#![allow(dead_code, clippy::unwrap_used)]

use agent::{Client, Done, Event, Hello, Request, Stop, TrialRequest};
use duel::{BlockDone, BootStart, DuelError, Eta, Observer, Plan, TrialStart, conduct};
use experiment::{
    Axis, Blocks, BootRecord, Description, Direction, Ending, Entry, Experiment, Facts, Header, Metric,
    Outcome, Parameter, Point, Record, TrialRecord, Usage, Variant,
};
use journal::Home;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use targets::{BootOrder, Booted, Target, TargetError};

/// What the agent does with its nth trial, counted over all agents of a run.
pub type Script = Arc<dyn Fn(u32, &TrialRequest) -> Reply + Send + Sync>;

/// What becomes of the nth boot of a run.
pub type Boots = Box<dyn Fn(u32, &BootOrder) -> Result<Booted, TargetError>>;

pub enum Reply {
    Value(f64),
    Die,
}

pub struct Fake {
    pub script: Script,
    pub count: Arc<AtomicU32>,
    pub stop: Stop,
    pub open: Option<Client>,
    pub abandoned: u32,
    /// None for a target that does not boot.
    pub boots: Option<Boots>,
    /// What was booted, and what was then asked of the agent.
    pub orders: Vec<(BootOrder, Arc<Mutex<Vec<Request>>>)>,
    /// What was announced as next at each boot.
    pub next: Vec<Vec<BootOrder>>,
    /// What the machine is after the nth boot.
    pub facts: fn(u32) -> Facts,
    pub last_words: Option<String>,
}

impl Fake {
    pub fn new(script: impl Fn(u32, &TrialRequest) -> Reply + Send + Sync + 'static) -> Fake {
        Fake {
            script: Arc::new(script),
            count: Arc::default(),
            stop: Stop::default(),
            open: None,
            abandoned: 0,
            boots: None,
            orders: Vec::new(),
            next: Vec::new(),
            facts: |_| Facts::default(),
            last_words: None,
        }
    }

    /// A target that boots; every trial measures 1.
    pub fn booting(boots: impl Fn(u32, &BootOrder) -> Result<Booted, TargetError> + 'static) -> Fake {
        Fake { boots: Some(Box::new(boots)), ..Fake::new(|_, _| Reply::Value(1.0)) }
    }

    fn start(&self, asked: Arc<Mutex<Vec<Request>>>) -> Result<Client, TargetError> {
        let (agent_in, to) = rustix::pipe::pipe().map_err(std::io::Error::from).unwrap();
        let (from, agent_out) = rustix::pipe::pipe().map_err(std::io::Error::from).unwrap();
        let (script, count) = (Arc::clone(&self.script), Arc::clone(&self.count));
        let facts = (self.facts)(self.orders.len() as u32);
        thread::spawn(move || {
            answer(File::from(agent_in), File::from(agent_out), &script, &count, facts, &asked)
        });
        Ok(Client::greet(to, from, self.stop.clone())?)
    }
}

impl Target for Fake {
    fn boots(&self) -> bool {
        self.boots.is_some()
    }

    fn check(&mut self, order: &BootOrder) -> Result<(), TargetError> {
        match &order.spec.kernel {
            Some(kernel) if kernel.starts_with("no-") => {
                Err(TargetError::boot(std::io::Error::other(format!("{kernel} is no kernel"))))
            }
            _ => Ok(()),
        }
    }

    fn boot(&mut self, order: &BootOrder, next: &[BootOrder]) -> Result<Option<Booted>, TargetError> {
        let Some(boots) = &self.boots else { return Ok(None) };
        self.open = None;
        let asked = Arc::default();
        self.orders.push((order.clone(), Arc::clone(&asked)));
        self.next.push(next.to_vec());
        let booted = boots(self.orders.len() as u32 - 1, order)?;
        self.open = Some(self.start(asked)?);
        Ok(Some(booted))
    }

    fn agent(&mut self, _variant: &Variant) -> Result<&mut Client, TargetError> {
        let client = match self.open.take() {
            Some(client) => client,
            None if self.boots() => return Err(TargetError::CleanUp("no boot is up".into())),
            None => self.start(Arc::default())?,
        };
        Ok(self.open.insert(client))
    }

    fn last_words(&mut self) -> Option<String> {
        self.last_words.clone()
    }

    fn abandon(&mut self) -> Result<(), TargetError> {
        self.open = None;
        self.abandoned += 1;
        Ok(())
    }

    fn close(&mut self) -> Result<(), TargetError> {
        self.open = None;
        Ok(())
    }
}

fn answer(
    requests: File,
    mut to: File,
    script: &Script,
    count: &AtomicU32,
    facts: Facts,
    asked: &Mutex<Vec<Request>>,
) {
    for line in BufReader::new(requests).lines() {
        let request: Request = serde_json::from_str(&line.unwrap()).unwrap();
        if !matches!(request, Request::Hello(_) | Request::Shutdown) {
            asked.lock().unwrap().push(request.clone());
        }
        let event = match request {
            Request::Hello(_) => Event::Hello(Hello::ours()),
            Request::Check { knobs, .. } => {
                let bad = knobs.iter().filter(|knob| knob.value == "impossible");
                Event::Checked { problems: bad.map(|knob| format!("{knob} cannot be")).collect() }
            }
            Request::Prepare { .. } => Event::Ready,
            Request::Facts => Event::Facts(Box::new(facts.clone())),
            Request::Trial(request) => match script(count.fetch_add(1, Ordering::SeqCst), &request) {
                Reply::Die => return,
                Reply::Value(value) => Event::Done(Box::new(Done {
                    outcome: Outcome::Done {
                        samples: BTreeMap::from([("time".into(), vec![value])]),
                        histograms: BTreeMap::new(),
                        counters: BTreeMap::new(),
                        evidence: Vec::new(),
                        notes: Vec::new(),
                    },
                    usage: Usage::default(),
                    kernel_log: Vec::new(),
                    elapsed_ns: 1,
                })),
            },
            Request::Shutdown => return,
        };
        // The coordinator may have gone.
        let _ = writeln!(to, "{}", serde_json::to_string(&event).unwrap());
    }
}

#[derive(Default)]
pub struct Silent {
    pub blocks: u32,
    pub notices: Vec<String>,
    pub etas: Vec<Eta>,
    /// The variant, twin, block and ETA of every boot.
    pub boots: Vec<(String, bool, u32, Eta)>,
}

impl Observer for Silent {
    fn begin(&mut self, _plan: &Plan, _done: usize) {}
    fn boot(&mut self, start: &BootStart<'_>) {
        self.boots.push((start.variant.into(), start.twin, start.block, start.eta));
    }
    fn trial(&mut self, start: &TrialStart<'_>) {
        self.etas.push(start.eta);
    }
    fn block(&mut self, _block: &BlockDone<'_>) {
        self.blocks += 1;
    }
    fn notice(&mut self, text: &str) {
        self.notices.push(text.into());
    }
}

pub fn header(blocks: Blocks, points: &[u64]) -> Header {
    let mut entry = Entry::of("toy");
    entry.points = points.iter().map(|point| Point::from(*point)).collect();
    let variants = vec![Variant::parse("a").unwrap(), Variant::parse("b:speed=2").unwrap()];
    let mut experiment = Experiment::new(vec![entry], variants);
    experiment.blocks = blocks;
    Header {
        run: "toy-run".into(),
        version: "0".into(),
        build: "0".into(),
        at_unix_ms: 0,
        seed: 11,
        experiment,
        descriptions: vec![Description {
            name: "toy".into(),
            summary: String::new(),
            about: String::new(),
            source: String::new(),
            axis: Axis {
                name: "threads".into(),
                heading: "Case".into(),
                suffix: String::new(),
                points: vec![Point::from(1)],
                range: Some((1, 100)),
            },
            parameters: vec![Parameter::text("speed", "1", "how fast")],
            metrics: vec![Metric::new("time", "s", Direction::Lower, "time in seconds", "")],
            requirements: Vec::new(),
        }],
        directory: None,
        imported: None,
    }
}

/// What came of a run.
pub struct Ran {
    pub ended: Result<Ending, DuelError>,
    pub trials: Vec<TrialRecord>,
    pub boots: Vec<BootRecord>,
    pub watcher: Silent,
}

/// Conducts a run of its own, or what `records` leave of it.
pub fn run(header: &Header, records: &[Record], fake: &mut Fake) -> Ran {
    let directory = tempfile::TempDir::new().unwrap();
    let mut journal = Home::at(directory.path()).create("toy-run", header).unwrap();
    for record in records {
        journal.append(record).unwrap();
    }
    let mut watcher = Silent::default();
    let stop = fake.stop.clone();
    let ended = conduct(header, records, &mut journal, fake, "token", &stop, &mut watcher);
    let (mut trials, mut boots) = (Vec::new(), Vec::new());
    for record in journal.read().unwrap().records {
        match record {
            Record::Trial(trial) => trials.push(*trial),
            Record::Boot(boot) => boots.push(*boot),
            _ => {}
        }
    }
    Ran { ended, trials, boots, watcher }
}
