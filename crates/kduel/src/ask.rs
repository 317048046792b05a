//! From flags and files to a checked experiment.

use anyhow::{Context as _, bail};
use clap::ValueEnum;
use experiment::{AskError, Blocks, Entry, Experiment, Point, TargetKind, Variant, did_you_mean, from_toml};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::str::FromStr;

/// The quickstart: what `kduel run` does when nothing is asked.
const QUICKSTART: &str = include_str!("../../../examples/quickstart.toml");

#[derive(Debug, Clone, Default, clap::Args)]
pub struct Flags {
    /// Workloads to run, see `kduel list workloads`; with --experiment, those of its workloads to run
    #[arg(value_name = "WORKLOAD")]
    pub workloads: Vec<String>,
    /// Take the experiment from a TOML file; flags override what it says
    #[arg(long, short, value_name = "FILE")]
    pub experiment: Option<PathBuf>,
    /// A side of the duel and what it changes, as NAME or NAME:KEY=VALUE,...; the first is the baseline.
    /// Keys are workload parameters, cpus, policy, nice, rseq, env.NAME, sysctl.NAME, sysfs.PATH and debugfs.PATH;
    /// where a kernel is booted also kernel, append, proxy and vm.NAME
    #[arg(long = "variant", short = 'V', value_name = "NAME[:KEY=VALUE,...]")]
    pub variants: Vec<String>,
    /// The points to take, such as 1,2,4 or 1-4
    #[arg(long, short, value_name = "LIST", allow_negative_numbers = true)]
    pub points: Option<String>,
    /// A workload parameter, or a knob of the boot such as vm.cpus, for all variants
    #[arg(long, short, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Run exactly N blocks [default: 10]; a block is one trial of every variant in random order
    #[arg(
        long,
        short,
        value_name = "N",
        conflicts_with = "until_decided",
        allow_negative_numbers = true,
        value_parser = number::<u32>("a whole number from 1 to 100000")
    )]
    pub blocks: Option<u32>,
    /// Look after 8, 12, 20 and 40 blocks and stop each point when it is decided
    #[arg(long)]
    pub until_decided: bool,
    /// The difference, in percent, below which two variants count as the same [default: 2]
    #[arg(
        long,
        value_name = "PCT",
        allow_negative_numbers = true,
        value_parser = number::<f64>("a percentage such as 2")
    )]
    pub margin: Option<f64>,
    /// Where trials run: local, vm (boots each variant's kernel afresh for every block) or ssh:HOST [default: local]
    #[arg(long, value_name = "TARGET")]
    pub target: Option<String>,
    /// The seed of every random choice [default: a new one, which the report names]
    #[arg(
        long,
        value_name = "N",
        allow_negative_numbers = true,
        value_parser = number::<u64>("a whole number from 0")
    )]
    pub seed: Option<u64>,
    /// Do not run the baseline twice per block; then nothing shows how far this machine can be trusted
    #[arg(long)]
    pub no_aa: bool,
    /// The longest that one trial may take, in seconds [default: 600]
    #[arg(
        long,
        value_name = "SECONDS",
        allow_negative_numbers = true,
        value_parser = number::<f64>("seconds such as 60")
    )]
    pub deadline: Option<f64>,
    /// Shrink the experiment to what its [scale.small] table says
    #[arg(long, value_name = "SCALE")]
    pub scale: Option<ScaleFlag>,
}

/// A reader of numbers that says what it takes.
fn number<T: FromStr>(
    wanted: &'static str,
) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static {
    move |text| text.parse().map_err(|_| format!("it takes {wanted}"))
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum ScaleFlag {
    /// What the file's [scale.small] table says
    Small,
}

/// The experiment that flags and file ask for, checked.
///
/// # Errors
/// When something cannot be meant; the error says where it stands and what could be.
pub fn experiment(flags: &Flags) -> anyhow::Result<Experiment> {
    let mut experiment = match (&flags.experiment, flags.workloads.is_empty()) {
        (Some(path), _) => {
            let text = std::fs::read_to_string(path)
                .with_context(|| format!("cannot read the experiment {}", path.display()))?;
            from_toml(&text).with_context(|| path.display().to_string())?
        }
        (None, true) => from_toml(QUICKSTART).context("quickstart.toml")?,
        (None, false) => {
            Experiment::new(flags.workloads.iter().map(|name| Entry::of(name)).collect(), Vec::new())
        }
    };
    let file = flags.experiment.as_ref().map(|path| path.display().to_string());
    if flags.scale.is_some() {
        let small = experiment.scaled_small();
        experiment = match &file {
            Some(file) => small.with_context(|| file.clone())?,
            None => small?,
        };
    }
    let as_the_file_says = experiment.clone();
    if flags.experiment.is_some() && !flags.workloads.is_empty() {
        keep_only(&mut experiment, &flags.workloads)?;
    }
    if !flags.variants.is_empty() {
        let variants = flags.variants.iter().map(|text| Variant::parse(text));
        experiment.variants = variants.collect::<Result<_, _>>()?;
    }
    if let Some(list) = &flags.points {
        let points = Point::list(list);
        if points.is_empty() {
            bail!("--points names no point; give it a list such as 1,2,4");
        }
        for entry in &mut experiment.workloads {
            entry.points = points.clone();
        }
    }
    if let Some(target) = &flags.target {
        experiment.target = TargetKind::parse(target)?;
        // What a file says of its virtual machine says nothing of other targets, so that one flag takes it to a real machine.
        let is_vm = experiment.target == TargetKind::Vm;
        experiment.set.retain(|key, _| is_vm || !key.starts_with("vm."));
    }
    let set = settings(&flags.set)?;
    // A flag goes before what the file says of a single workload.
    for entry in &mut experiment.workloads {
        entry.set.retain(|name, _| !set.contains_key(name));
    }
    experiment.set.extend(set);
    if let Some(blocks) = flags.blocks {
        experiment.blocks = Blocks::Exactly(blocks);
    }
    if flags.until_decided {
        experiment.blocks = Blocks::UntilDecided;
    }
    experiment.margin_pct = flags.margin.unwrap_or(experiment.margin_pct);
    experiment.seed = flags.seed.or(experiment.seed);
    experiment.aa &= !flags.no_aa;
    experiment.deadline_s = flags.deadline.unwrap_or(experiment.deadline_s);
    checked(experiment).map_err(|error| match file {
        // A mistake that is there without the flags, too, is one of the file.
        Some(file) if checked(as_the_file_says).as_ref() == Err(&error) => {
            anyhow::Error::new(error).context(file)
        }
        _ => error.into(),
    })
}

/// The experiment against the workloads that this build has.
///
/// # Errors
/// When something in it cannot be meant.
pub fn checked(experiment: Experiment) -> Result<Experiment, AskError> {
    let names = workloads::names();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    experiment.checked(|name| workloads::find(name).map(|workload| workload.describe()), &names)
}

fn keep_only(experiment: &mut Experiment, wanted: &[String]) -> anyhow::Result<()> {
    for name in wanted {
        let labels = || experiment.workloads.iter().map(|entry| entry.label.as_str());
        if !labels().any(|label| label == name) {
            bail!(
                "the experiment has no workload `{name}`; {}",
                did_you_mean(name, labels().collect::<Vec<_>>())
            );
        }
    }
    experiment.workloads.retain(|entry| wanted.contains(&entry.label));
    Ok(())
}

fn settings(pairs: &[String]) -> anyhow::Result<BTreeMap<String, String>> {
    let mut set = BTreeMap::new();
    for pair in pairs {
        match pair.split_once('=') {
            Some((name, value)) if !name.is_empty() => {
                if set.insert(name.into(), value.into()).is_some() {
                    bail!("--set {pair}: `{name}` is set twice; leave one of them out");
                }
            }
            _ => bail!("--set {pair}: write KEY=VALUE"),
        }
    }
    Ok(set)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_example_asks_something_that_this_build_can_run() {
        let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");
        let mut seen = 0;
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_none_or(|extension| extension != "toml") {
                continue;
            }
            for scale in [None, Some(ScaleFlag::Small)] {
                let is_quickstart = path.ends_with("quickstart.toml");
                if scale.is_some() && is_quickstart {
                    continue;
                }
                let flags = Flags { experiment: Some(path.clone()), scale, ..Flags::default() };
                experiment(&flags).unwrap_or_else(|error| panic!("{}: {error:#}", path.display()));
                seen += 1;
            }
        }
        assert!(seen > 3, "{seen}");
    }

    #[test]
    fn one_flag_takes_an_experiment_from_its_virtual_machine_to_this_one() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/slice-extension.toml");
        let flags = Flags { experiment: Some(file.into()), ..Flags::default() };
        let asked = experiment(&flags).unwrap();
        assert_eq!((asked.target, asked.set["vm.cpus"].as_str()), (TargetKind::Vm, "4"));
        let flags = Flags { target: Some("local".into()), ..flags };
        let asked = experiment(&flags).unwrap();
        assert_eq!(asked.target, TargetKind::Local);
        assert!(!asked.set.contains_key("vm.cpus"));
        let flags = Flags { set: vec!["vm.cpus=2".into()], ..flags };
        assert!(experiment(&flags).unwrap_err().to_string().contains("`vm.cpus`"));
    }

    #[test]
    fn a_mistake_is_laid_to_the_file_only_where_it_is_the_files() {
        let path = std::env::temp_dir().join(format!("kduel-ask-{}.toml", std::process::id()));
        std::fs::write(&path, "margin = 60\n[[workload]]\nname = \"hackbench\"\n").unwrap();
        let of = |margin, points: &str| {
            let flags = Flags {
                experiment: Some(path.clone()),
                margin,
                points: Some(points.into()),
                ..Flags::default()
            };
            experiment(&flags).map_err(|error| format!("{error:#}"))
        };
        let (in_file, in_flag, mended) = (of(None, "1"), of(Some(1.0), "x"), of(Some(1.0), "1"));
        std::fs::remove_file(&path).unwrap();
        let in_file = in_file.unwrap_err();
        assert!(
            in_file.starts_with(&path.display().to_string()) && in_file.contains("`margin`"),
            "{in_file}"
        );
        assert!(in_flag.unwrap_err().starts_with("`x` is no point"));
        assert!(mended.is_ok());
    }

    #[test]
    fn a_flag_goes_before_the_file_and_a_workload_narrows_it() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/originals.toml");
        let flags = Flags {
            experiment: Some(file.into()),
            workloads: vec!["futex-hash".into()],
            set: vec!["runtime=3".into()],
            points: Some("4".into()),
            blocks: Some(9),
            ..Flags::default()
        };
        let asked = experiment(&flags).unwrap();
        assert_eq!(asked.workloads.len(), 1);
        assert_eq!(asked.workloads[0].points, Point::list("4"));
        assert_eq!(asked.blocks, Blocks::Exactly(9));
        let description = workloads::find("futex-hash").unwrap().describe();
        let params = asked.params(&asked.workloads[0], &asked.variants[0], &description).unwrap();
        assert_eq!(params.text("runtime").unwrap(), "3");
        let error = experiment(&Flags { workloads: vec!["futex-hsh".into()], ..flags }).unwrap_err();
        assert!(error.to_string().contains("`futex-hash`"), "{error}");
    }
}
