//! The options of each kernel that can be built, and whether a source took them.

use clap::ValueEnum;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// What the kernels have in common.
const FEATURES: &str = include_str!("features.config");

/// A kernel that can be built.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Variant {
    /// The features that the reports are about, without jump labels, so that emulation with several CPUs is stable
    Features,
    /// The same with the checks that lock developers turn on, which a comparison must not overlook
    LockDebugging,
    /// The same without the time slice extension
    NoSlice,
    /// The same with jump labels, as real machines should have them
    JumpLabels,
}

/// What is not set in a configuration.
const UNSET: &str = "n";

/// Names of options, such as `CONFIG_SMP`, and their values.
#[derive(Debug, PartialEq)]
pub(crate) struct Options(BTreeMap<String, String>);

impl Variant {
    /// Its name on the command line and in paths.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Variant::Features => "features",
            Variant::LockDebugging => "lock-debugging",
            Variant::NoSlice => "no-slice",
            Variant::JumpLabels => "jump-labels",
        }
    }

    pub(crate) fn options(self) -> Options {
        let mut options = Options::parse(FEATURES);
        let changes: &[(&str, &str)] = match self {
            Variant::Features => &[],
            Variant::LockDebugging => &[("CONFIG_PROVE_LOCKING", "y"), ("CONFIG_DEBUG_ATOMIC_SLEEP", "y")],
            Variant::NoSlice => &[("CONFIG_RSEQ_SLICE_EXTENSION", UNSET)],
            Variant::JumpLabels => &[("CONFIG_JUMP_LABEL", "y")],
        };
        let version = format!("\"-kduel-{}\"", self.name());
        for (name, value) in changes.iter().chain(&[("CONFIG_LOCALVERSION", version.as_str())]) {
            options.0.insert((*name).into(), (*value).into());
        }
        options
    }
}

impl Options {
    /// Reads a configuration or a part of one.
    pub(crate) fn parse(text: &str) -> Options {
        let options = text.lines().filter_map(|line| {
            let unset = line.strip_prefix("# ").and_then(|rest| rest.strip_suffix(" is not set"));
            let (name, value) = unset.map(|name| (name, UNSET)).or_else(|| line.split_once('='))?;
            name.starts_with("CONFIG_").then(|| (name.to_string(), value.to_string()))
        });
        Options(options.collect())
    }

    /// The text that the kernel's own configuration takes.
    pub(crate) fn text(&self) -> String {
        self.0.iter().fold(String::new(), |mut text, (name, value)| {
            // Writing to a string does not fail.
            let _ = match value.as_str() {
                UNSET => writeln!(text, "# {name} is not set"),
                value => writeln!(text, "{name}={value}"),
            };
            text
        })
    }

    /// What `config` has otherwise, one clause each.
    pub(crate) fn missed_by(&self, config: &Options) -> Vec<String> {
        let missed = self.0.iter().filter_map(|(name, wanted)| {
            let found = config.0.get(name).map_or(UNSET, String::as_str);
            (found != wanted).then(|| format!("{name} is {found}, not {wanted}"))
        });
        missed.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variants_differ_in_what_they_are_named_for() {
        let features = Variant::Features.options();
        for (variant, option) in [
            (Variant::LockDebugging, "CONFIG_PROVE_LOCKING is n, not y"),
            (Variant::NoSlice, "CONFIG_RSEQ_SLICE_EXTENSION is y, not n"),
            (Variant::JumpLabels, "CONFIG_JUMP_LABEL is n, not y"),
        ] {
            let missed = variant.options().missed_by(&features);
            assert!(missed.iter().any(|clause| clause == option), "{missed:?}");
            assert!(missed.len() <= 3, "{missed:?}");
        }
    }

    #[test]
    fn the_text_is_read_as_it_was_written() {
        let options = Variant::LockDebugging.options();
        assert_eq!(Options::parse(&options.text()), options);
        assert!(options.missed_by(&options).is_empty());
        let missed = options.missed_by(&Options::parse("# about\nCONFIG_SMP=y\n"));
        assert!(missed.contains(&"CONFIG_NUMA is n, not y".into()), "{missed:?}");
        assert!(
            !missed
                .iter()
                .any(|clause| clause.contains("CONFIG_SMP") || clause.contains("CONFIG_JUMP_LABEL"))
        );
    }
}
