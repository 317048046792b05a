//! What a trial used, by the counters of the kernel before and after it.

use crate::Root;
use crate::cgroup::{Cgroups, Throttling};
use crate::cpu_ticks::CpuTicks;
use experiment::Usage;
use std::mem::MaybeUninit;

/// The counters of the kernel at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    children: Option<Rusage>,
    steal_ns: Option<u64>,
    throttling: Option<Throttling>,
}

/// Whose counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whose {
    /// Those of all threads of this process.
    Process,
    /// Those of its children that have been waited for, with theirs.
    Children,
    /// Those of the calling thread.
    Thread,
}

/// What the kernel counted, since a process or thread began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Rusage {
    /// Time in user space.
    pub user_ns: u64,
    /// Time in the kernel.
    pub system_ns: u64,
    /// The largest resident set.
    pub max_rss_bytes: u64,
    /// Page faults, with those for which something had to be read.
    pub faults: u64,
    /// Switches to another task because this one waited.
    pub voluntary_switches: u64,
    /// Switches to another task though this one could go on.
    pub involuntary_switches: u64,
}

impl Snapshot {
    /// Reads the counters of the machine, of the groups of this process and of its children that have been waited
    /// for. What cannot be read is absent from what is computed later.
    pub fn take(root: &Root) -> Snapshot {
        Snapshot {
            children: rusage(Whose::Children),
            steal_ns: root.text("proc/stat").ok().and_then(|stat| CpuTicks::parse(&stat)?.stolen_ns()),
            throttling: Cgroups::of_self(root).ok().and_then(|groups| groups.throttling()),
        }
    }

    /// What was used from this snapshot to a later one, with a sentence for every counter that ran backwards: such
    /// a figure is absent, since it cannot be known. The largest resident set and the migrations are not
    /// in it: see [`usage_of_self`].
    pub fn until(&self, later: &Snapshot) -> (Usage, Vec<String>) {
        let mut backwards = Vec::new();
        let mut between = |what: &str, before: Option<u64>, after: Option<u64>| {
            let (before, after) = (before?, after?);
            let difference = after.checked_sub(before);
            if difference.is_none() {
                backwards.push(format!("the kernel's count of {what} ran backwards by {}", before - after));
            }
            difference
        };
        let (before, after) = (&self.children, &later.children);
        let mut child = |what: &str, get: fn(&Rusage) -> u64| {
            between(what, before.as_ref().map(get), after.as_ref().map(get))
        };
        let usage = Usage {
            user_ns: child("user time (ns)", |rusage| rusage.user_ns),
            system_ns: child("system time (ns)", |rusage| rusage.system_ns),
            voluntary_switches: child("voluntary switches", |rusage| rusage.voluntary_switches),
            involuntary_switches: child("involuntary switches", |rusage| rusage.involuntary_switches),
            steal_ns: between("stolen time (ns)", self.steal_ns, later.steal_ns),
            throttled_ns: between(
                "throttled time (ns)",
                self.throttling.map(|throttling| throttling.stopped_ns),
                later.throttling.map(|throttling| throttling.stopped_ns),
            ),
            ..Usage::default()
        };
        (usage, backwards)
    }

    /// What was used from this snapshot to now; as [`Snapshot::until`].
    pub fn usage_since(&self, root: &Root) -> (Usage, Vec<String>) {
        self.until(&Snapshot::take(root))
    }
}

/// What this process and its children that have been waited for used since they began: for a trial to say at its
/// own end.
pub fn usage_of_self(root: &Root) -> Usage {
    let own = rusage(Whose::Process);
    let children = rusage(Whose::Children);
    let sum =
        |get: fn(&Rusage) -> u64| Some(get(own.as_ref()?).saturating_add(children.as_ref().map_or(0, get)));
    let own_rss = own.map(|own| own.max_rss_bytes);
    Usage {
        user_ns: sum(|rusage| rusage.user_ns),
        system_ns: sum(|rusage| rusage.system_ns),
        max_rss_bytes: own_rss.max(children.map(|children| children.max_rss_bytes)),
        voluntary_switches: sum(|rusage| rusage.voluntary_switches),
        involuntary_switches: sum(|rusage| rusage.involuntary_switches),
        migrations: root.text("proc/self/sched").ok().and_then(|text| migrations(&text)),
        ..Usage::default()
    }
}

/// Reads the counters; `None` where the kernel does not tell.
pub fn rusage(whose: Whose) -> Option<Rusage> {
    let who = match whose {
        Whose::Process => libc::RUSAGE_SELF,
        Whose::Children => libc::RUSAGE_CHILDREN,
        Whose::Thread => libc::RUSAGE_THREAD,
    };
    let mut raw = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the kernel writes one rusage to the address of a live one.
    if unsafe { libc::getrusage(who, raw.as_mut_ptr()) } != 0 {
        return None;
    }
    // SAFETY: it was zeroed, which is a legal value, and then written by the kernel.
    let raw = unsafe { raw.assume_init() };
    let ns = |time: libc::timeval| {
        u64::try_from(time.tv_sec).ok()?.checked_mul(1_000_000_000)?.checked_add(time.tv_usec as u64 * 1000)
    };
    let count = |value: libc::c_long| u64::try_from(value).ok();
    Some(Rusage {
        user_ns: ns(raw.ru_utime)?,
        system_ns: ns(raw.ru_stime)?,
        max_rss_bytes: count(raw.ru_maxrss)?.saturating_mul(1024),
        faults: count(raw.ru_minflt)?.saturating_add(count(raw.ru_majflt)?),
        voluntary_switches: count(raw.ru_nvcsw)?,
        involuntary_switches: count(raw.ru_nivcsw)?,
    })
}

fn migrations(sched: &str) -> Option<u64> {
    let line = sched.lines().find(|line| line.trim_start().starts_with("se.nr_migrations"))?;
    line.rsplit(':').next()?.trim().parse().ok()
}
