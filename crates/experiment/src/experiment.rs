use crate::boot::is_boot_key;
use crate::{
    Description, Knob, KnobError, Known, Missing, ParamError, Params, Point, Refusal, Scope, TargetKind,
    Variant, VariantError, counted, did_you_mean,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use thiserror::Error;

/// The margin inside which a difference counts as none, in percent, unless the experiment names another.
pub const MARGIN_PCT: f64 = 2.0;

/// What is asked: workloads, points, variants, blocks and the target.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Experiment {
    /// What the experiment is about, for the head of the report.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The workloads, each with its points and parameters.
    pub workloads: Vec<Entry>,
    /// The variants; the first is the baseline.
    pub variants: Vec<Variant>,
    /// Parameters for every workload that has them, and boot knobs for every variant that does not turn them itself.
    #[serde(default)]
    pub set: BTreeMap<String, String>,
    /// How many blocks.
    pub blocks: Blocks,
    /// The margin inside which a difference counts as none, in percent.
    pub margin_pct: f64,
    /// The seed of every random choice; drawn and recorded when the run starts if none is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Whether the baseline runs twice in each block.
    pub aa: bool,
    /// Where trials run.
    pub target: TargetKind,
    /// The longest that one trial may take, in seconds, before it is killed and counted as missing.
    pub deadline_s: f64,
    /// Differences between machines and kernels across which variants are compared all the same.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub accept_differences: Vec<Refusal>,
    /// What `--scale small` changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub small: Option<Scale>,
}

/// One workload of an experiment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// The workload's name.
    pub workload: String,
    /// What reports call it; differs from the name when one workload stands in an experiment more than once.
    pub label: String,
    /// The points to take; empty for the workload's own.
    #[serde(default)]
    pub points: Vec<Point>,
    /// Parameters of this workload.
    #[serde(default)]
    pub set: BTreeMap<String, String>,
}

impl Entry {
    /// A workload under its own name, with its own points and parameters.
    pub fn of(workload: &str) -> Entry {
        Entry { workload: workload.into(), label: workload.into(), points: Vec::new(), set: BTreeMap::new() }
    }
}

/// How many blocks a point gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Blocks {
    /// Just so many.
    Exactly(u32),
    /// Until every comparison of the point is decided, looking after 8, 12, 20 and 40 blocks.
    UntilDecided,
}

impl Blocks {
    /// The number of blocks that a point cannot exceed.
    pub fn cap(self) -> u32 {
        match self {
            Blocks::Exactly(blocks) => blocks,
            Blocks::UntilDecided => 40,
        }
    }
}

impl fmt::Display for Blocks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Blocks::Exactly(blocks) => f.write_str(&counted(*blocks, "block")),
            Blocks::UntilDecided => write!(f, "until decided, at most {} blocks", self.cap()),
        }
    }
}

/// What `--scale small` makes of an experiment.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Scale {
    /// Fewer blocks.
    #[serde(default)]
    pub blocks: Option<Blocks>,
    /// Parameters for every workload that has them.
    #[serde(default)]
    pub set: BTreeMap<String, String>,
    /// Points and parameters by the label of the workload.
    #[serde(default)]
    pub workloads: BTreeMap<String, ScaleEntry>,
}

/// What `--scale small` makes of one workload.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ScaleEntry {
    /// Other points, unless empty.
    #[serde(default)]
    pub points: Vec<Point>,
    /// Parameters.
    #[serde(default)]
    pub set: BTreeMap<String, String>,
}

/// What is wrong with an experiment.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum AskError {
    /// A workload that kduel does not have.
    #[error("no workload is called `{name}`; {hint}")]
    Workload {
        /// The name that was given.
        name: String,
        /// The nearest, or all of them.
        hint: String,
    },
    /// A target that this build does not have.
    #[error("no target is called `{0}`; known are: local, vm, ssh:HOST")]
    Target(String),
    /// Nothing to run.
    #[error("the experiment names no workload; name one, such as `kduel run hackbench`")]
    NoWorkload,
    /// Two workloads or variants of one name.
    #[error("two {what} are called `{name}`; give each its own name")]
    Twice {
        /// `variants` or `workloads`.
        what: &'static str,
        /// The shared name.
        name: String,
    },
    /// A number outside its limits.
    #[error("`{what}` cannot be {value}: it takes {wanted}")]
    Number {
        /// The setting.
        what: &'static str,
        /// The value that was given.
        value: String,
        /// What it takes.
        wanted: &'static str,
    },
    /// A parameter that none of the workloads has.
    #[error("no workload of this experiment has a parameter `{name}`; {hint}")]
    Stray {
        /// The parameter.
        name: String,
        /// The nearest, or all of them.
        hint: String,
    },
    /// A parameter or point that a workload does not take.
    #[error(transparent)]
    Param(#[from] ParamError),
    /// A variant that cannot be.
    #[error(transparent)]
    Variant(#[from] VariantError),
    /// A knob that cannot be.
    #[error(transparent)]
    Knob(#[from] KnobError),
    /// A knob that the target cannot turn.
    #[error("`{key}` cannot be turned on target {target}: {why}")]
    Misplaced {
        /// The knob.
        key: String,
        /// The target.
        target: TargetKind,
        /// Why, and what to do instead.
        why: &'static str,
    },
    /// Variants under which a workload yields different metrics.
    #[error(
        "{workload}: {variants} do not measure the same: the one yields {wanted}, the other {found}; \
         compare them in runs of their own"
    )]
    Unlike {
        /// The label of the workload.
        workload: String,
        /// The baseline and the first variant that yields something else: `base and new`.
        variants: String,
        /// What the baseline yields, in words.
        wanted: String,
        /// What the variant yields.
        found: String,
    },
    /// Variants whose machines go by clocks of two kinds.
    #[error(
        "variant {counted} runs in virtual time and variant {other} by the host's clock, and figures of two clocks say \
         nothing about each other; --set vm.clock=virtual, or host, is for all variants"
    )]
    Clocks {
        /// The first variant in virtual time.
        counted: String,
        /// The first that is not.
        other: String,
    },
    /// `--scale small` of an experiment that does not say what small means.
    #[error("the experiment has no [scale.small] table that says what `--scale small` means for it")]
    NoScale,
    /// `[scale.small.NAME]` of a workload that the experiment does not have.
    #[error("[scale.small.{name}]: this experiment has no workload `{name}`; {hint}")]
    ScaleOf {
        /// The name that was given.
        name: String,
        /// The nearest of the experiment's own, or all of them.
        hint: String,
    },
}

impl Experiment {
    /// An experiment of these workloads and variants with every setting at its default.
    pub fn new(workloads: Vec<Entry>, variants: Vec<Variant>) -> Experiment {
        Experiment {
            title: None,
            workloads,
            variants,
            set: BTreeMap::new(),
            blocks: Blocks::Exactly(10),
            margin_pct: MARGIN_PCT,
            seed: None,
            aa: true,
            target: TargetKind::Local,
            deadline_s: 600.0,
            accept_differences: Vec::new(),
            small: None,
        }
    }

    /// Compares also across these differences.
    pub fn accept(&mut self, differences: &[Refusal]) {
        for difference in differences {
            if !self.accept_differences.contains(difference) {
                self.accept_differences.push(difference.clone());
            }
        }
    }

    /// The experiment as `--scale small` makes it.
    ///
    /// # Errors
    /// When it does not say what small means.
    pub fn scaled_small(mut self) -> Result<Experiment, AskError> {
        let small = self.small.take().ok_or(AskError::NoScale)?;
        for label in small.workloads.keys() {
            if !self.workloads.iter().any(|entry| entry.label == *label) {
                return Err(AskError::ScaleOf {
                    name: label.clone(),
                    hint: did_you_mean(label, self.workloads.iter().map(|entry| entry.label.as_str())),
                });
            }
        }
        if let Some(blocks) = small.blocks {
            self.blocks = blocks;
        }
        for entry in &mut self.workloads {
            // What is said of small runs goes before what is said of all.
            entry.set.retain(|name, _| !small.set.contains_key(name));
            if let Some(scale) = small.workloads.get(&entry.label) {
                if !scale.points.is_empty() {
                    entry.points = scale.points.clone();
                }
                entry.set.extend(scale.set.clone());
            }
        }
        self.set.extend(small.set);
        Ok(self)
    }

    /// Checks everything that can be checked without the machine, and fills in the points that were left open.
    /// `describe` knows the workloads, `names` lists them.
    ///
    /// # Errors
    /// At the first thing that cannot be meant; the error says what could be.
    pub fn checked(
        mut self,
        describe: impl Fn(&str) -> Option<Description>,
        names: &[&str],
    ) -> Result<Experiment, AskError> {
        if self.workloads.is_empty() {
            return Err(AskError::NoWorkload);
        }
        if self.variants.is_empty() {
            self.variants.push(Variant::new("base", Vec::new())?);
        }
        let number = |what, value: String, wanted| Err(AskError::Number { what, value, wanted });
        if !(self.margin_pct > 0.0 && self.margin_pct <= 50.0) {
            return number("margin", self.margin_pct.to_string(), "a percentage above 0, at most 50");
        }
        if !(self.deadline_s > 0.0 && self.deadline_s <= 1e6) {
            return number("deadline", self.deadline_s.to_string(), "seconds above 0, at most 1000000");
        }
        if let Blocks::Exactly(blocks) = self.blocks
            && !(1..=100_000).contains(&blocks)
        {
            return number("blocks", blocks.to_string(), "a whole number from 1 to 100000");
        }
        unique("variants", self.variants.iter().map(|variant| variant.name.as_str()))?;
        unique("workloads", self.workloads.iter().map(|entry| entry.label.as_str()))?;

        let mut descriptions = Vec::new();
        for entry in &mut self.workloads {
            let description = describe(&entry.workload).ok_or_else(|| AskError::Workload {
                name: entry.workload.clone(),
                hint: did_you_mean(&entry.workload, names.iter().copied()),
            })?;
            if entry.points.is_empty() {
                entry.points = description.axis.points.clone();
            }
            for point in &entry.points {
                description.check_point(point)?;
            }
            unique("points", entry.points.iter().map(Point::as_str))?;
            for name in entry.set.keys() {
                description.parameter(name)?;
            }
            descriptions.push(description);
        }
        let variants = self.variants.iter().flat_map(|variant| &variant.knobs);
        let set_by_variants = variants.filter_map(|knob| match &knob.scope {
            Scope::Parameter(name) => Some(name),
            _ => None,
        });
        let of_workloads = self.set.keys().filter(|key| !is_boot_key(key));
        for name in of_workloads.chain(set_by_variants) {
            if !descriptions.iter().any(|description| description.parameter(name).is_ok()) {
                let all = descriptions.iter().flat_map(|d| &d.parameters).map(|p| p.name.as_str());
                return Err(AskError::Stray {
                    name: name.clone(),
                    hint: did_you_mean(name, all.chain(Knob::FORMS)),
                });
            }
        }
        for (entry, description) in self.workloads.iter().zip(&descriptions) {
            for variant in &self.variants {
                self.params(entry, variant, description)?;
            }
        }
        self.check_boot_knobs()?;
        Ok(self)
    }

    /// The parameters of `entry` under `variant`: the variant's knobs before the entry's own, before the
    /// experiment's, before the defaults.
    ///
    /// # Errors
    /// When a value is not one that the parameter takes.
    pub fn params(
        &self,
        entry: &Entry,
        variant: &Variant,
        description: &Description,
    ) -> Result<Params, ParamError> {
        let mut set = self.settings(entry, variant);
        set.retain(|name, _| description.parameter(name).is_ok());
        description.params(&set)
    }

    /// Whether `variant` changes anything for a workload. A variant whose every knob is a parameter that the
    /// workload does not have would measure the baseline against itself.
    ///
    /// # Errors
    /// Says which knobs do not apply.
    pub fn applies(&self, variant: &Variant, description: &Description) -> Known<()> {
        let idle = |scope: &Scope| match scope {
            Scope::Parameter(name) => description.parameter(name).is_err(),
            _ => false,
        };
        if variant.knobs.is_empty() || variant.knobs.iter().any(|knob| !idle(&knob.scope)) {
            return Ok(());
        }
        Err(Missing::because(format!("{} does not apply to {}", variant.knobs_in_words(), description.name)))
    }

    /// The baseline: the first variant.
    pub fn baseline(&self) -> Option<&Variant> {
        self.variants.first()
    }
}

fn unique<'a>(what: &'static str, names: impl Iterator<Item = &'a str>) -> Result<(), AskError> {
    let mut seen = std::collections::BTreeSet::new();
    for name in names {
        if !seen.insert(name) {
            return Err(AskError::Twice { what, name: name.into() });
        }
    }
    Ok(())
}
