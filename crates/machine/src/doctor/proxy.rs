//! Proxy execution: whether a waiter lends its turn to the owner of a mutex.

use super::{Finding, Subject};
pub(super) use crate::proxy_execution::WORD;
use crate::{ProxyExecution, ProxyState};

const ABILITY: &str = "proxy execution";

pub(super) fn finding(subject: &Subject) -> Finding {
    let command_line = subject.facts.command_line.as_deref().unwrap_or_default();
    // The log repeats the command line, which says what was asked and not what was done.
    let says = |line: &&String| line.contains(WORD) && !line.contains("ommand line");
    let logged = subject.log.iter().flatten().rfind(says);
    let logged = logged.map_or(String::new(), |line| format!("; the kernel logged `{line}`"));
    let ProxyExecution { state, seen } =
        ProxyExecution::of(subject.root, subject.facts.kernel_config(), command_line);
    match state {
        ProxyState::Unknown => Finding::unknown(ABILITY, seen)
            .advice("Put the kernel's configuration into /boot, or look for CONFIG_SCHED_PROXY_EXEC in it."),
        ProxyState::Absent => Finding::no(ABILITY, format!("{seen}{logged}")).advice(ProxyExecution::REMEDY),
        ProxyState::On => Finding::ok(ABILITY, format!("{seen}{logged}")),
        ProxyState::Off => Finding::limited(ABILITY, format!("{seen}{logged}"))
            .advice(format!("Boot with {WORD}=1; in a VM: --target vm with the knob proxy=on.")),
    }
}
