use crate::shared::pin;
use crate::words::split;
use crate::{Failure, Trial, Workload};
use experiment::{Description, Params, Point, did_you_mean};
use machine::CpuSet;
use std::collections::BTreeMap;

/// A workload with its parameters, its point and its CPUs, as a part of a trial.
pub struct Part {
    /// Which part, for messages: `the load, hackbench`.
    pub title: String,
    /// The workload.
    pub workload: &'static dyn Workload,
    /// All that can be said about it.
    pub description: Description,
    params: Params,
    point: Point,
    cpus: CpuSet,
}

impl Part {
    /// The part that `text` means: the name of a workload and `KEY=VALUE` words, which win over those of `before`. Without
    /// a point it takes the first of its own; without CPUs it has those of the trial.
    ///
    /// # Errors
    /// When the text cannot be meant, and when the point or the CPUs cannot be had. The error names the part.
    pub fn new(
        role: &str,
        text: &str,
        before: &[(&str, &str)],
        point: Option<Point>,
        cpus: &str,
        trial: &Trial,
    ) -> Result<Part, Failure> {
        let (workload, own) = read(text).map_err(|failure| failure.of(role))?;
        let mut set: BTreeMap<String, String> =
            before.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        set.extend(own);
        let description = workload.describe_for(&set);
        let title = format!("{role}, {}", description.name);
        let named = |failure: Failure| failure.of(&title);
        let params = description.params(&set).map_err(|error| named(error.into()))?;
        let point = point.or_else(|| description.axis.points.first().cloned());
        let point =
            point.ok_or_else(|| named(Failure::Refused("it has no point of its own; name one".into())))?;
        description.check_point(&point).map_err(|error| named(error.into()))?;
        let cpus = cpus_of(cpus, trial).map_err(named)?;
        Ok(Part { title, workload, description, params, point, cpus })
    }

    /// The description of what `text` means.
    ///
    /// # Errors
    /// When it cannot be meant.
    pub fn description(text: &str) -> Result<Description, Failure> {
        let (workload, set) = read(text)?;
        Ok(workload.describe_for(&set))
    }

    /// Whether it could be done.
    ///
    /// # Errors
    /// What stands against it; the error names the part.
    pub fn check(&self, trial: &Trial) -> Result<(), Failure> {
        let checked = self.workload.check(&self.params, &self.trial(trial.seed()));
        checked.map_err(|failure| failure.of(&self.title))
    }

    /// Does it once, as a trial of its own with this seed. The calling process gets its CPUs.
    ///
    /// # Errors
    /// What it fails with.
    pub fn run(&self, seed: u64) -> Result<Trial, Failure> {
        pin(&self.cpus)?;
        let mut trial = self.trial(seed);
        self.workload.run(&self.params, &mut trial)?;
        Ok(trial)
    }

    fn trial(&self, seed: u64) -> Trial {
        Trial::new(self.point.clone(), self.cpus.to_vec(), seed)
    }
}

/// The workload that a text names, and what the text sets for it.
fn read(text: &str) -> Result<(&'static dyn Workload, BTreeMap<String, String>), Failure> {
    let mut words = split(text)?.into_iter();
    let name = words.next().ok_or_else(|| Failure::Refused("no workload is named".into()))?;
    if name == "mixed" {
        return Err(Failure::Refused("a mixed cannot be a part of a mixed; name another workload".into()));
    }
    let workload = crate::find(&name).ok_or_else(|| {
        let names = crate::names();
        let hint = did_you_mean(&name, names.iter().map(String::as_str));
        Failure::Refused(format!("no workload is called `{name}`; {hint}"))
    })?;
    let pair = |word: String| match word.split_once('=') {
        Some((key, value)) => Ok((key.to_string(), value.to_string())),
        None => Err(Failure::Refused(format!(
            "`{word}` is no parameter; behind the name of the workload stand words such as KEY=VALUE"
        ))),
    };
    Ok((workload, words.map(pair).collect::<Result<_, _>>()?))
}

fn cpus_of(list: &str, trial: &Trial) -> Result<CpuSet, Failure> {
    let allowed: CpuSet = trial.cpus().iter().copied().collect();
    if list.is_empty() {
        return Ok(allowed);
    }
    let asked: CpuSet =
        list.parse().map_err(|error: machine::CpuError| Failure::Refused(error.to_string()))?;
    match asked.without(&allowed).iter().next() {
        None if !asked.is_empty() => Ok(asked),
        None => Err(Failure::Refused(format!("`{list}` names no CPU"))),
        Some(cpu) => Err(Failure::Refused(format!("CPU {cpu} is not among those of the trial"))),
    }
}
