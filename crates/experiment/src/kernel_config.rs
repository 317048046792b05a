//! The options that a kernel was built with.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The options that a kernel was built with: those that are set, with their values as they stand in the file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct KernelConfig {
    options: BTreeMap<String, String>,
}

impl KernelConfig {
    /// What the value of an option that is not set is called.
    pub const NOT_SET: &str = "n";

    /// Whether a text is that of a configuration: it says of at least one option that it is set, or that it is not.
    pub fn is_in(text: &str) -> bool {
        text.lines().any(|line| line.starts_with("CONFIG_") || line.starts_with("# CONFIG_"))
    }

    /// Reads the text of a configuration. Lines of another form are passed over.
    pub fn parse(text: &str) -> KernelConfig {
        let options = text.lines().filter_map(|line| {
            let (name, value) = line.trim().split_once('=')?;
            name.starts_with("CONFIG_").then(|| (name.to_string(), value.to_string()))
        });
        KernelConfig { options: options.collect() }
    }

    /// The value of an option such as `CONFIG_HZ`; `None` where it is not set.
    pub fn get(&self, option: &str) -> Option<&str> {
        self.options.get(option).map(String::as_str)
    }

    /// The value of an option, and [`KernelConfig::NOT_SET`] where it is not set.
    pub fn value(&self, option: &str) -> &str {
        self.get(option).unwrap_or(KernelConfig::NOT_SET)
    }

    /// Whether an option is built in.
    pub fn has(&self, option: &str) -> bool {
        self.get(option) == Some("y")
    }

    /// The names of all options that are set, in alphabetical order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.options.keys().map(String::as_str)
    }

    /// The number of options that are set.
    pub fn len(&self) -> usize {
        self.options.len()
    }

    /// Whether no option is set.
    pub fn is_empty(&self) -> bool {
        self.options.is_empty()
    }

    /// A checksum of all options and values: the same whatever the order and the comments of the file.
    pub fn id(&self) -> String {
        let mut sum = crc32fast::Hasher::new();
        for (name, value) in &self.options {
            sum.update(name.as_bytes());
            sum.update(b"=");
            sum.update(value.as_bytes());
            sum.update(b"\n");
        }
        format!("{:08x}", sum.finalize())
    }

    /// The preemption model that the kernel was built to start with: `none`, `voluntary`, `full`, `lazy` or `rt`.
    pub fn preemption(&self) -> Option<&'static str> {
        [
            ("CONFIG_PREEMPT_RT", "rt"),
            ("CONFIG_PREEMPT_NONE", "none"),
            ("CONFIG_PREEMPT_VOLUNTARY", "voluntary"),
            ("CONFIG_PREEMPT_LAZY", "lazy"),
            ("CONFIG_PREEMPT", "full"),
        ]
        .iter()
        .find_map(|(option, model)| self.has(option).then_some(*model))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_is_of_the_options_and_not_of_the_file() {
        let id = |text: &str| KernelConfig::parse(text).id();
        let one = id("# a comment\nCONFIG_A=y\n# CONFIG_C is not set\nCONFIG_B=\"x\"\n");
        assert_eq!(one, id("CONFIG_B=\"x\"\nCONFIG_A=y"));
        assert_ne!(one, id("CONFIG_B=\"x\"\nCONFIG_A=m"));
        assert_ne!(id("CONFIG_A=y"), id("CONFIG_A=y\nCONFIG_B=y"));
    }

    #[test]
    fn an_option_that_is_not_mentioned_is_not_set() {
        let config = KernelConfig::parse("CONFIG_HZ=250\n# CONFIG_SMP is not set\nHZ=1\nrubbish\n");
        assert_eq!((config.get("CONFIG_SMP"), config.value("CONFIG_SMP"), config.len()), (None, "n", 1));
        assert_eq!((config.value("CONFIG_HZ"), config.has("CONFIG_HZ")), ("250", false));
        assert!(
            KernelConfig::is_in("# c\n# CONFIG_SMP is not set\n") && !KernelConfig::is_in("no CONFIG_X=y")
        );
    }
}
