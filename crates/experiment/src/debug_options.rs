//! Kernel options that help to find faults and make the kernel slower: which they are, and what each of them does all the
//! time. A comparison of a kernel that has one with a kernel that does not measures the option.

use crate::KernelConfig;

/// An option that costs time.
struct Costly {
    name: &'static str,
    /// What it does all the time, as a clause.
    does: &'static str,
    /// When it does so.
    when: When,
}

/// When a debug option does its work.
enum When {
    /// In every kernel that is built with it.
    Always,
    /// Once a word that begins so stands on the kernel command line; until then its code sleeps.
    Woken(&'static [&'static str]),
    /// Unless this option is set, too.
    Unless(&'static str),
}

const fn always(name: &'static str, does: &'static str) -> Costly {
    Costly { name, does, when: When::Always }
}

const fn woken(name: &'static str, words: &'static [&'static str], does: &'static str) -> Costly {
    Costly { name, does, when: When::Woken(words) }
}

const COSTLY: &[Costly] = &[
    // Locks.
    always("CONFIG_PROVE_LOCKING", "checks the order of every lock that is taken"),
    always("CONFIG_LOCKDEP", "keeps a list of the locks that each task holds, at every lock and unlock"),
    always("CONFIG_DEBUG_LOCKDEP", "checks the lock checker itself at every lock and unlock"),
    always("CONFIG_PROVE_RAW_LOCK_NESTING", "checks the nesting of spinlocks and raw spinlocks"),
    always("CONFIG_LOCK_STAT", "measures how long every lock is waited for and held"),
    always("CONFIG_DEBUG_LOCK_ALLOC", "looks for held locks in all memory that is freed"),
    always(
        "CONFIG_DEBUG_SPINLOCK",
        "stores and checks the owner of every spinlock, and takes it out of line",
    ),
    always("CONFIG_DEBUG_MUTEXES", "checks every mutex, and sends lock and unlock through the slow path"),
    always("CONFIG_DEBUG_RT_MUTEXES", "checks every rt_mutex, and sends it through the slow path"),
    always("CONFIG_DEBUG_RWSEMS", "checks the owner of every rwsem"),
    always(
        "CONFIG_DEBUG_WW_MUTEX_SLOWPATH",
        "makes ww_mutexes fail now and then, so that they are taken twice",
    ),
    always("CONFIG_DEBUG_ATOMIC_SLEEP", "checks at every call that may sleep whether sleeping is allowed"),
    // Preemption, interrupts, entry.
    always("CONFIG_DEBUG_PREEMPT", "checks each use of per-CPU data for preemption"),
    always("CONFIG_DEBUG_IRQFLAGS", "checks the interrupt flag each time that it is put back"),
    always("CONFIG_TRACE_IRQFLAGS", "calls a hook each time that interrupts are switched on or off"),
    always("CONFIG_TRACE_PREEMPT_TOGGLE", "calls a hook each time that preemption is switched on or off"),
    always("CONFIG_IRQSOFF_TRACER", "has a hook wherever interrupts are switched on or off"),
    always("CONFIG_PREEMPT_TRACER", "has a hook wherever preemption is switched on or off"),
    always("CONFIG_DEBUG_ENTRY", "checks the state of the CPU at each entry to the kernel"),
    always("CONFIG_CSD_LOCK_WAIT_DEBUG_DEFAULT", "watches every call of a function on another CPU"),
    always("CONFIG_DEBUG_RSEQ", "checks the rseq area of the thread at each exit to user space that uses it"),
    always(
        "CONFIG_RSEQ_DEBUG_DEFAULT_ENABLE",
        "checks the rseq area of the thread at each exit to user space",
    ),
    always("CONFIG_DEBUG_WQ_FORCE_RR_CPU", "moves work of workqueues to other CPUs in turn"),
    // RCU and time.
    always("CONFIG_PROVE_RCU", "checks each use of RCU"),
    always("CONFIG_RCU_EQS_DEBUG", "checks each time that a CPU goes idle or leaves the kernel, for RCU"),
    always("CONFIG_RCU_STRICT_GRACE_PERIOD", "makes RCU end its grace periods as early as possible"),
    always("CONFIG_DEBUG_TIMEKEEPING", "checks each reading of the clock"),
    always("CONFIG_DEBUG_OBJECTS", "follows the life of timers, work and other objects in a table"),
    // Memory.
    always("CONFIG_KASAN", "checks each memory access of the kernel against a shadow"),
    always("CONFIG_KCSAN", "watches memory accesses of the kernel for data races"),
    always("CONFIG_KMSAN", "checks each value that the kernel uses for being initialised"),
    Costly {
        name: "CONFIG_DEBUG_KMEMLEAK",
        does: "records every allocation, and scans memory for leaks",
        when: When::Unless("CONFIG_DEBUG_KMEMLEAK_DEFAULT_OFF"),
    },
    always("CONFIG_DEBUG_VM", "checks the memory management at each of its steps"),
    always("CONFIG_DEBUG_VM_PGFLAGS", "checks each use of the flags of a page"),
    always("CONFIG_DEBUG_VM_MAPLE_TREE", "checks the tree of memory areas at each change"),
    always("CONFIG_DEBUG_VM_RB", "checks a tree of memory areas at each change"),
    always("CONFIG_DEBUG_VIRTUAL", "checks each translation of a kernel address"),
    always("CONFIG_DEBUG_PAGEALLOC_ENABLE_DEFAULT", "unmaps each page that is free"),
    always("CONFIG_PAGE_TABLE_CHECK_ENFORCED", "checks each entry that is set in a page table"),
    always("CONFIG_SLUB_DEBUG_ON", "checks each object for damage when it is allocated and freed"),
    always("CONFIG_SLUB_STATS", "counts every step of every allocation"),
    always("CONFIG_MEM_ALLOC_PROFILING_ENABLED_BY_DEFAULT", "accounts each allocation to its caller"),
    always("CONFIG_MEM_ALLOC_PROFILING_DEBUG", "checks the accounts of all allocations"),
    always("CONFIG_DEBUG_CGROUP_REF", "takes references to control groups out of line"),
    always("CONFIG_DMA_API_DEBUG", "follows each mapping of memory for devices"),
    // Data structures.
    always("CONFIG_DEBUG_LIST", "checks the neighbours at each change of a linked list"),
    always("CONFIG_DEBUG_PLIST", "checks whole lists of priorities at each change"),
    always("CONFIG_DEBUG_MAPLE_TREE", "checks maple trees at each change"),
    always("CONFIG_DEBUG_SG", "checks each scatter list"),
    always("CONFIG_DEBUG_NOTIFIERS", "checks each call of a notifier"),
    always("CONFIG_DEBUG_CREDENTIALS", "checks each use of credentials"),
    always("CONFIG_DEBUG_PER_CPU_MAPS", "checks each use of a mask of CPUs"),
    always("CONFIG_DEBUG_NET", "checks assumptions of the network stack for each packet"),
    always("CONFIG_DEBUG_STACK_USAGE", "searches the stack of each task that ends for its deepest use"),
    // The compiler's.
    always("CONFIG_KCOV", "calls a function at each branch, to record the code that tasks run"),
    always("CONFIG_GCOV_KERNEL", "counts every line that runs"),
    always("CONFIG_PROFILE_ANNOTATED_BRANCHES", "counts every branch that is marked as likely or unlikely"),
    always("CONFIG_PROFILE_ALL_BRANCHES", "counts every branch"),
    always("CONFIG_DEBUG_SECTION_MISMATCH", "keeps functions that are called once out of line"),
    always("CONFIG_READABLE_ASM", "forgoes optimisations that make assembly hard to read"),
    always("CONFIG_FAULT_INJECTION", "asks at each allocation whether it shall fail"),
    // Asleep until the command line wakes them.
    woken(
        "CONFIG_CSD_LOCK_WAIT_DEBUG",
        &["csdlock_debug"],
        "watches every call of a function on another CPU",
    ),
    woken("CONFIG_DEBUG_KMEMLEAK", &["kmemleak=on"], "records every allocation, and scans memory for leaks"),
    woken(
        "CONFIG_PAGE_POISONING",
        &["page_poison=1", "page_poison=on", "page_poison=y"],
        "fills each page that is freed, and checks it when it is taken",
    ),
    woken(
        "CONFIG_DEBUG_PAGEALLOC",
        &["debug_pagealloc=1", "debug_pagealloc=on", "debug_pagealloc=y"],
        "unmaps each page that is free",
    ),
    woken("CONFIG_SLUB_DEBUG", &["slub_debug", "slab_debug"], "checks objects for damage"),
    woken(
        "CONFIG_PAGE_OWNER",
        &["page_owner=on", "page_owner=1", "page_owner=y"],
        "records who took each page",
    ),
    woken(
        "CONFIG_PAGE_TABLE_CHECK",
        &["page_table_check=1", "page_table_check=on", "page_table_check=y"],
        "checks each entry that is set in a page table",
    ),
    woken("CONFIG_SCHEDSTATS", &["schedstats=enable"], "measures the waits and runs of every task"),
];

/// What an option that [`KernelConfig::debug_options`] names costs, as a clause: `CONFIG_KASAN` "checks each memory
/// access of the kernel against a shadow".
pub fn cost_of(option: &str) -> Option<&'static str> {
    COSTLY.iter().find_map(|costly| (costly.name == option).then_some(costly.does))
}

/// When an option that costs time does its work, as a clause; `None` for one that always does.
pub fn when_of(option: &str) -> Option<String> {
    let clauses = COSTLY.iter().filter(|costly| costly.name == option).map(|costly| match costly.when {
        When::Always => None,
        When::Woken(wakers) => Some(format!("once {} is on the kernel command line", wakers.first()?)),
        When::Unless(other) => Some(format!("unless {other} is set")),
    });
    let clauses: Option<Vec<String>> = clauses.collect();
    clauses.filter(|clauses| !clauses.is_empty()).map(|clauses| clauses.join(", or "))
}

/// Every option that costs time, once each, in the order in which reports name them.
pub fn costly_options() -> impl Iterator<Item = &'static str> + Clone {
    let first =
        |place: usize, name: &str| COSTLY.iter().position(|costly| costly.name == name) == Some(place);
    COSTLY
        .iter()
        .enumerate()
        .filter(move |(place, costly)| first(*place, costly.name))
        .map(|(_, costly)| costly.name)
}

/// Whether a word of the kernel command line wakes an option that sleeps without it.
pub fn is_woken_by(option: &str, words: &[&str]) -> bool {
    COSTLY.iter().any(|costly| {
        costly.name == option && matches!(costly.when, When::Woken(wakers) if wakes(wakers, words))
    })
}

fn wakes(wakers: &[&str], words: &[&str]) -> bool {
    words.iter().any(|given| {
        // `slub_debug` alone, and with anything behind it, as `slub_debug=FZ`.
        wakers.iter().any(|waker| {
            given == waker || given.strip_prefix(waker).is_some_and(|rest| rest.starts_with('='))
        })
    })
}

impl KernelConfig {
    /// The debug options that cost time in a kernel that was started with this command line.
    pub fn debug_options(&self, command_line: &str) -> Vec<String> {
        let words: Vec<&str> = command_line.split_whitespace().collect();
        let works = |name: &str| {
            self.has(name)
                && COSTLY.iter().filter(|costly| costly.name == name).any(|costly| match costly.when {
                    When::Always => true,
                    When::Woken(wakers) => wakes(wakers, &words),
                    When::Unless(other) => !self.has(other),
                })
        };
        costly_options().filter(|name| works(name)).map(str::to_string).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_code_that_sleeps_is_not_called_costly() {
        let config = KernelConfig::parse(
            "CONFIG_SLUB_DEBUG=y\nCONFIG_PAGE_POISONING=y\nCONFIG_PROVE_LOCKING=m\nCONFIG_DEBUG_KMEMLEAK=y\n\
             CONFIG_DEBUG_KMEMLEAK_DEFAULT_OFF=y\n",
        );
        assert_eq!(config.debug_options("quiet"), [""; 0]);
        assert_eq!(config.debug_options("slub_debug=FZ"), ["CONFIG_SLUB_DEBUG"]);
        assert_eq!(config.debug_options("slub_debugger page_poison=on"), ["CONFIG_PAGE_POISONING"]);
        assert_eq!(config.debug_options("kmemleak=on"), ["CONFIG_DEBUG_KMEMLEAK"]);
        let awake = KernelConfig::parse("CONFIG_DEBUG_KMEMLEAK=y\n");
        assert_eq!(awake.debug_options(""), ["CONFIG_DEBUG_KMEMLEAK"]);
    }

    #[test]
    fn every_option_says_what_it_does() {
        for option in costly_options() {
            assert!(cost_of(option).is_some_and(|does| !does.is_empty()), "{option}");
            assert!(option.starts_with("CONFIG_"), "{option}");
        }
        let all: Vec<&str> = costly_options().collect();
        let unique: std::collections::BTreeSet<&&str> = all.iter().collect();
        assert_eq!(all.len(), unique.len());
        assert_eq!(cost_of("CONFIG_HZ"), None);
        assert_eq!(when_of("CONFIG_KASAN"), None);
        assert_eq!(
            when_of("CONFIG_DEBUG_KMEMLEAK").unwrap(),
            "unless CONFIG_DEBUG_KMEMLEAK_DEFAULT_OFF is set, or once kmemleak=on is on the kernel command line"
        );
        assert!(is_woken_by("CONFIG_SLUB_DEBUG", &["quiet", "slub_debug"]));
        assert!(!is_woken_by("CONFIG_KASAN", &["kasan"]));
    }
}
