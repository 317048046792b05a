//! The conductor against an agent that measures nothing: it answers what the test tells it to.

#![allow(clippy::unwrap_used)]

use agent::{Client, Done, Event, Hello, Request, Stop, TrialRequest};
use duel::{BlockDone, DuelError, Eta, Observer, Plan, TrialStart, conduct};
use experiment::{
    Axis, Blocks, Description, Direction, Ending, Entry, Experiment, Failure, Header, Metric, Outcome,
    Parameter, Point, Record, TrialRecord, Usage, Variant,
};
use journal::Home;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;
use targets::{Target, TargetError};

/// What the agent does with its nth trial, counted over all agents of a run.
type Script = Arc<dyn Fn(u32, &TrialRequest) -> Reply + Send + Sync>;

enum Reply {
    Value(f64),
    Die,
}

struct Fake {
    script: Script,
    count: Arc<AtomicU32>,
    stop: Stop,
    open: Option<Client>,
    abandoned: u32,
}

impl Fake {
    fn new(script: impl Fn(u32, &TrialRequest) -> Reply + Send + Sync + 'static) -> Fake {
        Fake {
            script: Arc::new(script),
            count: Arc::default(),
            stop: Stop::default(),
            open: None,
            abandoned: 0,
        }
    }
}

impl Target for Fake {
    fn agent(&mut self, _variant: &Variant) -> Result<&mut Client, TargetError> {
        let client = match self.open.take() {
            Some(client) => client,
            None => {
                let (agent_in, to) = rustix::pipe::pipe().map_err(std::io::Error::from).unwrap();
                let (from, agent_out) = rustix::pipe::pipe().map_err(std::io::Error::from).unwrap();
                let (script, count) = (Arc::clone(&self.script), Arc::clone(&self.count));
                thread::spawn(move || answer(File::from(agent_in), File::from(agent_out), &script, &count));
                Client::greet(to, from, self.stop.clone())?
            }
        };
        Ok(self.open.insert(client))
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

fn answer(requests: File, mut to: File, script: &Script, count: &AtomicU32) {
    for line in BufReader::new(requests).lines() {
        let event = match serde_json::from_str(&line.unwrap()).unwrap() {
            Request::Hello(_) => Event::Hello(Hello::ours()),
            Request::Check { knobs, .. } => {
                let bad = knobs.iter().filter(|knob| knob.value == "impossible");
                Event::Checked { problems: bad.map(|knob| format!("{knob} cannot be")).collect() }
            }
            Request::Prepare { .. } => Event::Ready,
            Request::Facts => Event::Facts(Box::default()),
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
struct Silent {
    blocks: u32,
    notices: u32,
    etas: Vec<Eta>,
}

impl Observer for Silent {
    fn begin(&mut self, _plan: &Plan, _done: usize) {}
    fn trial(&mut self, start: &TrialStart<'_>) {
        self.etas.push(start.eta);
    }
    fn block(&mut self, _block: &BlockDone<'_>) {
        self.blocks += 1;
    }
    fn notice(&mut self, _text: &str) {
        self.notices += 1;
    }
}

fn header(blocks: Blocks, points: &[u64]) -> Header {
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
        imported: None,
    }
}

/// Conducts a run of its own, or what `records` leave of it.
fn run(
    header: &Header,
    records: &[Record],
    fake: &mut Fake,
) -> (Result<Ending, DuelError>, Vec<TrialRecord>, Silent) {
    let directory = tempfile::TempDir::new().unwrap();
    let mut journal = Home::at(directory.path()).create("toy-run", header).unwrap();
    for record in records {
        journal.append(record).unwrap();
    }
    let mut watcher = Silent::default();
    let stop = fake.stop.clone();
    let ended = conduct(header, records, &mut journal, fake, "token", &stop, &mut watcher);
    let trials = journal.read().unwrap().records.into_iter().filter_map(|record| match record {
        Record::Trial(trial) => Some(*trial),
        _ => None,
    });
    (ended, trials.collect(), watcher)
}

#[test]
fn a_clear_difference_stops_its_point_and_a_doubtful_one_goes_on() {
    // At point 1 the variant is twice as slow. At point 2 every block says something else.
    let mut fake = Fake::new(|count, request| {
        let slow = request.work.params.text("speed") == Ok("2");
        let noise = 1.0 + f64::from(count * 7919 % 101) / 1000.0;
        Reply::Value(match (request.work.point.as_str(), slow) {
            ("1", true) => 2.0 * noise,
            ("1", false) => noise,
            _ => noise * noise.powi(4),
        })
    });
    let (ended, trials, _) = run(&header(Blocks::UntilDecided, &[1, 2]), &[], &mut fake);
    assert_eq!(ended.unwrap(), Ending::Finished);
    let blocks =
        |point: &str| trials.iter().filter(|t| t.point.as_str() == point).map(|t| t.block).max().unwrap();
    // Alone it would stop after 8; with two comparisons in the family no p value of 8 blocks is small enough.
    assert_eq!(blocks("1"), 12);
    assert!(blocks("2") > 8, "{}", blocks("2"));
    assert!(blocks("2") <= 40);
}

#[test]
fn a_clear_difference_alone_is_decided_at_the_first_look() {
    let mut fake = Fake::new(|count, request| {
        let slow = request.work.params.text("speed") == Ok("2");
        // No block may lie outside the others, or the claim would have to hold without it, too.
        let noise = 1.0 + f64::from(count * 7919 % 101) / 10_000.0;
        Reply::Value(noise * if slow { 2.0 } else { 1.0 })
    });
    let (ended, trials, _) = run(&header(Blocks::UntilDecided, &[1]), &[], &mut fake);
    assert_eq!(ended.unwrap(), Ending::Finished);
    assert_eq!(trials.len(), 8 * 3);
}

#[test]
fn a_resumed_run_does_what_is_left_in_the_order_that_it_began_with() {
    let header = header(Blocks::Exactly(6), &[1, 2]);
    let (_, whole, _) = run(&header, &[], &mut Fake::new(|_, _| Reply::Value(1.0)));
    assert_eq!(whole.len(), 6 * 2 * 3);
    for kept in [0, 1, 17, 35, 36] {
        let records: Vec<Record> =
            whole[..kept].iter().map(|trial| Record::Trial(Box::new(trial.clone()))).collect();
        let (ended, trials, _) = run(&header, &records, &mut Fake::new(|_, _| Reply::Value(1.0)));
        assert_eq!(ended.unwrap(), Ending::Finished);
        let keys = |trials: &[TrialRecord]| {
            let key = |t: &TrialRecord| (t.block, t.point.to_string(), t.variant.clone(), t.twin);
            trials.iter().map(key).collect::<Vec<_>>()
        };
        assert_eq!(keys(&trials), keys(&whole), "kept {kept}");
    }
}

#[test]
fn a_lost_agent_costs_one_trial() {
    let mut fake = Fake::new(|count, _| if count == 4 { Reply::Die } else { Reply::Value(1.0) });
    let (ended, trials, watcher) = run(&header(Blocks::Exactly(3), &[1]), &[], &mut fake);
    assert_eq!(ended.unwrap(), Ending::Finished);
    assert_eq!(trials.len(), 9);
    let missing: Vec<&TrialRecord> =
        trials.iter().filter(|trial| matches!(trial.outcome, Outcome::Missing { .. })).collect();
    assert_eq!(missing.len(), 1);
    assert!(matches!(missing[0].outcome, Outcome::Missing { failure: Failure::Agent, .. }));
    assert_eq!((fake.abandoned, watcher.notices, watcher.blocks), (1, 1, 3));
}

#[test]
fn a_machine_on_which_agents_keep_dying_ends_the_run() {
    let (ended, trials, _) = run(&header(Blocks::Exactly(3), &[1]), &[], &mut Fake::new(|_, _| Reply::Die));
    assert!(matches!(ended, Err(DuelError::AgentsLost { .. })));
    assert!(trials.len() < 9);
}

#[test]
fn impossible_knobs_are_all_named_before_the_first_trial() {
    let mut header = header(Blocks::Exactly(3), &[1]);
    header.experiment.variants = vec![
        Variant::parse("a:nice=1").unwrap(),
        Variant::parse("b:env.X=impossible,env.Y=impossible").unwrap(),
    ];
    let (ended, trials, _) = run(&header, &[], &mut Fake::new(|_, _| Reply::Value(1.0)));
    let error = ended.unwrap_err().to_string();
    assert!(error.contains("env.X") && error.contains("env.Y"), "{error}");
    assert_eq!(trials.len(), 0);
}

#[test]
fn a_stop_interrupts_and_keeps_what_is_done() {
    let mut fake = Fake::new(|_, _| Reply::Value(1.0));
    let stop = fake.stop.clone();
    let stopping = fake.stop.clone();
    fake.script = Arc::new(move |count, _| {
        if count == 5 {
            stopping.ask();
        }
        Reply::Value(1.0)
    });
    let (ended, trials, _) = run(&header(Blocks::Exactly(6), &[1]), &[], &mut fake);
    assert!(stop.asked());
    assert!(matches!(ended, Ok(Ending::Interrupted(_))));
    assert!((5..=6).contains(&trials.len()), "{}", trials.len());
}

#[test]
fn a_stop_before_the_first_trial_is_no_lost_agent() {
    let mut fake = Fake::new(|_, _| Reply::Value(1.0));
    fake.stop.ask();
    let (ended, trials, watcher) = run(&header(Blocks::Exactly(6), &[1]), &[], &mut fake);
    assert!(matches!(ended, Ok(Ending::Interrupted(_))), "{ended:?}");
    assert_eq!((trials.len(), watcher.notices, fake.abandoned), (0, 0, 0));
}

#[test]
fn what_is_left_counts_the_trials_of_the_block_that_runs() {
    let header = header(Blocks::Exactly(2), &[1]);
    let (_, trials, watcher) = run(&header, &[], &mut Fake::new(|_, _| Reply::Value(1.0)));
    assert_eq!(trials.len(), 6);
    for done in 1..6 {
        let total: Duration = trials[..done].iter().map(|trial| Duration::from_nanos(trial.elapsed_ns)).sum();
        assert_eq!(
            watcher.etas[done].at_most,
            total / done as u32 * (6 - done as u32),
            "{done} trials are done"
        );
    }
    // A run that is taken up again knows so from its first trial on.
    let records: Vec<Record> =
        trials[..4].iter().map(|trial| Record::Trial(Box::new(trial.clone()))).collect();
    let (_, trials, watcher) = run(&header, &records, &mut Fake::new(|_, _| Reply::Value(1.0)));
    let total: Duration = trials[..4].iter().map(|trial| Duration::from_nanos(trial.elapsed_ns)).sum();
    assert_eq!(watcher.etas[0].at_most, total / 4 * 2);
}

#[test]
fn a_trial_that_ends_with_a_stop_has_not_failed() {
    let mut fake = Fake::new(|_, _| Reply::Die);
    let stopping = fake.stop.clone();
    fake.script = Arc::new(move |count, _| {
        if count < 5 {
            return Reply::Value(1.0);
        }
        stopping.ask();
        Reply::Die
    });
    let (ended, trials, watcher) = run(&header(Blocks::Exactly(6), &[1]), &[], &mut fake);
    assert!(matches!(ended, Ok(Ending::Interrupted(_))), "{ended:?}");
    assert_eq!((trials.len(), watcher.notices), (5, 0));
}
