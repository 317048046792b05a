//! Proxy execution: whether a waiter lends its turn to the owner of a mutex.

use super::{Finding, Subject, symbols};

const ABILITY: &str = "proxy execution";
const OPTION: &str = "CONFIG_SCHED_PROXY_EXEC";
/// The word of the kernel command line, and of the kernel's log when it obeys.
pub(super) const WORD: &str = "sched_proxy_exec";
/// The function that is there in kernels that have the feature.
const FUNCTION: &str = "find_proxy_task";

pub(super) fn finding(subject: &Subject) -> Finding {
    let command_line = subject.facts.command_line.as_deref().unwrap_or_default();
    // The log repeats the command line, which says what was asked and not what was done.
    let says = |line: &&String| line.contains(WORD) && !line.contains("ommand line");
    let logged = subject.log.iter().flatten().rfind(says);
    let logged = logged.map_or(String::new(), |line| format!("; the kernel logged `{line}`"));
    let Some((built, evidence)) = is_built_in(subject) else {
        return Finding::unknown(
            ABILITY,
            "neither the kernel's configuration nor /proc/kallsyms can be read",
        )
        .advice(format!("Put the kernel's configuration into /boot, or look for {OPTION} in it."));
    };
    if !built {
        return Finding::no(ABILITY, format!("{evidence}{logged}"))
            .advice(format!(
                "Boot a kernel with {OPTION}, which excludes SCHED_CLASS_EXT and PREEMPT_RT. `cargo xtask kernel` \
                 builds one."
            ));
    }
    match switched(command_line) {
        // Once it is built in, it is on unless it is switched off.
        Some(true) => Finding::ok(ABILITY, format!("{evidence}; on by the command line{logged}")),
        None => {
            Finding::ok(ABILITY, format!("{evidence}; on, since nothing on the command line says otherwise"))
        }
        Some(false) => Finding::limited(ABILITY, format!("{evidence}; off by the command line{logged}"))
            .advice(format!("Boot with {WORD}=1; in a VM: --target vm with the knob proxy=on.")),
    }
}

/// Whether the kernel has it, and what says so.
fn is_built_in(subject: &Subject) -> Option<(bool, String)> {
    if let Some(config) = subject.facts.kernel_config() {
        let built = config.has(OPTION);
        return Some((built, format!("{OPTION} is {}", if built { "y" } else { "not set" })));
    }
    let built = symbols::has(subject.root, FUNCTION)?;
    Some((built, format!("/proc/kallsyms has {}{FUNCTION}", if built { "" } else { "no " })))
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
}
