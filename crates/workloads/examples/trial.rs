//! One trial without the agent: `trial WORKLOAD POINT [KEY=VALUE]…` prints what it yielded as JSON.

use experiment::Point;
use std::collections::BTreeMap;
use std::env;
use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [name, point, set @ ..] = arguments.as_slice() else {
        return Err("usage: trial WORKLOAD POINT [KEY=VALUE]...".into());
    };
    let workload = workloads::find(name).ok_or("no such workload")?;
    let pairs = set.iter().filter_map(|pair| pair.split_once('='));
    let set: BTreeMap<String, String> = pairs.map(|(key, value)| (key.into(), value.into())).collect();
    let params = workload.describe().params(&set)?;
    let cpus = machine::cpus::allowed()?.to_vec();
    let mut trial = workloads::Trial::new(Point::new(point), cpus, 1);
    workload.run(&params, &mut trial)?;
    println!("{}", serde_json::to_string(&trial.into_outcome())?);
    Ok(())
}
