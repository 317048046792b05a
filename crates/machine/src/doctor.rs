//! What a machine can do for duels, what shows it, and what closes each gap.
//!
//! Nothing is guessed from names and releases: what can be tried without changing the machine is tried, and what was
//! not tried says so.

mod cgroups;
mod clock;
mod cpus;
mod finding;
mod futex_hash;
mod kernel;
mod kvm;
mod limits;
mod load;
mod memory;
mod perf;
mod perf_event;
mod proxy;
mod rseq;
pub(crate) mod symbols;
mod tools;

use crate::{KernelLog, Root, facts};
use experiment::{Facts, Known};
pub use finding::{Finding, Remedy, State};
use serde::Serialize;
use std::path::Path;

/// The findings on one subject.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Section {
    /// What they are about.
    pub title: &'static str,
    /// One for each ability.
    pub findings: Vec<Finding>,
}

/// The machine that is looked at, with what several checks want to know.
struct Subject<'a> {
    root: &'a Root,
    facts: Facts,
    /// The lines of the kernel's log that checks look for; `None` where it cannot be read.
    log: Option<Vec<String>>,
}

/// Looks at a machine; at the real one for more than a second, since it watches what else runs there.
///
/// `home` is where runs are kept. `guest` is what came of booting a guest under KVM: what was seen, or why it did not come
/// up; `None` where that was not tried.
pub fn examine(root: &Root, home: Option<&Path>, guest: Option<&Known<String>>) -> Vec<Section> {
    let words = [&[proxy::WORD][..], clock::LOG_WORDS].concat();
    let subject = Subject {
        root,
        facts: facts(root),
        log: if root.is_real() { KernelLog::lines_with(&words) } else { None },
    };
    // First of all: what this process does later must not be in what it sees of the load.
    let load = load::findings(&subject);
    let mut quiet = cpus::findings(&subject);
    quiet.extend(load);
    quiet.push(clock::finding(&subject));
    let mut features = rseq::findings(root);
    features.extend([proxy::finding(&subject), futex_hash::finding(root)]);
    let mut room = cgroups::findings(root);
    room.extend(limits::findings(root));
    room.extend([memory::memory(root), memory::space(home)]);
    let mut programs = vec![tools::qemu(root), kvm::finding(root, guest)];
    programs.extend(tools::others(root));
    let watching = vec![
        perf::pmu(&subject),
        perf::software_clock(root),
        perf::permissions(root),
        symbols::finding(root),
    ];
    vec![
        Section { title: "Other kernels and machines", findings: programs },
        Section { title: "Counting and profiling", findings: watching },
        Section { title: "Kernel features under test", findings: features },
        Section { title: "Room", findings: room },
        Section { title: "CPUs and quiet", findings: quiet },
        Section { title: "The kernel and its settings", findings: kernel::findings(&subject) },
    ]
}
