//! Proxy execution: whether the kernel has it, and whether it is switched on.

use crate::doctor::symbols;
use crate::{Root, running_config};
use experiment::KernelConfig;

const OPTION: &str = "CONFIG_SCHED_PROXY_EXEC";
/// The word of the kernel command line, and of the kernel's log when it obeys.
pub(crate) const WORD: &str = "sched_proxy_exec";
/// The function that is there in kernels that have the feature.
const FUNCTION: &str = "find_proxy_task";

/// What a kernel says of proxy execution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProxyExecution {
    /// Whether it is there.
    pub state: ProxyState,
    /// What says so.
    pub seen: String,
}

/// Whether a kernel has proxy execution, by what it says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProxyState {
    /// Neither its configuration nor its symbols can be read.
    Unknown,
    /// It was built without.
    Absent,
    /// The command line switched it off.
    Off,
    /// It was built with it, and nothing switched it off.
    On,
}

impl ProxyExecution {
    /// What brings it to a kernel that was built without.
    pub const REMEDY: &str = "Boot Linux 6.17 or newer with CONFIG_SCHED_PROXY_EXEC, which excludes SCHED_CLASS_EXT and \
                              PREEMPT_RT. `cargo xtask kernel` builds one: docs/kernels.md.";

    /// What the running kernel says.
    pub fn read(root: &Root) -> ProxyExecution {
        let config = running_config(root).map(|(config, _)| config);
        let command_line = root.text("proc/cmdline").unwrap_or_default();
        ProxyExecution::of(root, config.as_ref(), &command_line)
    }

    /// The same, where configuration and command line have been read.
    pub(crate) fn of(root: &Root, config: Option<&KernelConfig>, command_line: &str) -> ProxyExecution {
        let Some((built, seen)) = is_built_in(root, config) else {
            return ProxyExecution {
                state: ProxyState::Unknown,
                seen: "neither the kernel's configuration nor /proc/kallsyms can be read".into(),
            };
        };
        let (state, seen) = match (built, switched(command_line)) {
            (false, _) => (ProxyState::Absent, seen),
            // Once it is built in, it is on unless it is switched off.
            (true, None) => {
                (ProxyState::On, format!("{seen}; on, since nothing on the command line says otherwise"))
            }
            (true, Some(true)) => (ProxyState::On, format!("{seen}; on by the command line")),
            (true, Some(false)) => (ProxyState::Off, format!("{seen}; off by the command line")),
        };
        ProxyExecution { state, seen }
    }
}

/// Whether the kernel has it, and what says so.
fn is_built_in(root: &Root, config: Option<&KernelConfig>) -> Option<(bool, String)> {
    if let Some(config) = config {
        let built = config.has(OPTION);
        return Some((built, format!("{OPTION} is {}", if built { "y" } else { "not set" })));
    }
    let built = symbols::has(root, FUNCTION)?;
    let has = if built { format!("has {FUNCTION}") } else { format!("has no {FUNCTION} ({OPTION})") };
    Some((built, format!("/proc/kallsyms {has}")))
}

/// What the last such word of the command line says. The word alone switches it on.
fn switched(command_line: &str) -> Option<bool> {
    let word = command_line.split_whitespace().rev().find_map(|word| word.strip_prefix(WORD))?;
    match word.strip_prefix('=') {
        None => word.is_empty().then_some(true),
        Some(value) => match value.as_bytes() {
            [b'1' | b'y' | b'Y' | b't' | b'T', ..] => Some(true),
            [b'o' | b'O', b'n' | b'N', ..] => Some(true),
            [b'0' | b'n' | b'N' | b'f' | b'F', ..] => Some(false),
            [b'o' | b'O', b'f' | b'F', ..] => Some(false),
            _ => None,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_word_of_the_command_line_counts_in_the_kernels_own_forms() {
        assert_eq!(switched("quiet"), None);
        assert_eq!(switched("sched_proxy_exec quiet"), Some(true));
        assert_eq!(switched("sched_proxy_exec=1 sched_proxy_exec=off"), Some(false));
        assert_eq!(switched("sched_proxy_exec=on"), Some(true));
        assert_eq!(switched("sched_proxy_exec=maybe"), None);
        assert_eq!(switched("sched_proxy_execution=0"), None);
    }

    #[test]
    fn a_running_kernel_says_it_by_its_symbols_where_its_configuration_cannot_be_read() {
        let tree = tempfile::tempdir().unwrap();
        let root = Root::at(tree.path());
        let state = || ProxyExecution::read(&root).state;
        assert_eq!(state(), ProxyState::Unknown);
        std::fs::create_dir(tree.path().join("proc")).unwrap();
        let plant =
            |name: &str, text: &str| std::fs::write(tree.path().join("proc").join(name), text).unwrap();
        plant("kallsyms", "ffffffff81000000 t find_other\n");
        assert_eq!(state(), ProxyState::Absent);
        assert!(ProxyExecution::read(&root).seen.contains(OPTION));
        plant("kallsyms", "ffffffff81000000 t find_proxy_task\n");
        assert_eq!(state(), ProxyState::On);
        plant("cmdline", "quiet sched_proxy_exec=0\n");
        assert_eq!(state(), ProxyState::Off);
    }
}
