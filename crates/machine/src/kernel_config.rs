//! The options that the running kernel was built with.

use crate::Root;
use flate2::read::GzDecoder;
use std::collections::BTreeMap;
use std::io::Read as _;

/// Unpacked, a kernel configuration is some hundred KiB; what is much larger is something else.
const BYTES_MAX: u64 = 8 << 20;

/// Options that make a kernel slower than the same kernel without them, and how.
const DEBUG_OPTIONS: &[(&str, &str)] = &[
    ("CONFIG_PROVE_LOCKING", "checks the order of every lock that is taken"),
    ("CONFIG_PROVE_RAW_LOCK_NESTING", "checks the nesting of raw spinlocks"),
    ("CONFIG_LOCKDEP", "keeps track of every lock that is held"),
    ("CONFIG_LOCK_STAT", "measures the wait and hold time of every lock"),
    ("CONFIG_DEBUG_LOCK_ALLOC", "watches for the freeing of held locks, with lockdep"),
    ("CONFIG_DEBUG_SPINLOCK", "checks the owner of every spinlock"),
    ("CONFIG_DEBUG_MUTEXES", "checks the owner of every mutex"),
    ("CONFIG_DEBUG_RT_MUTEXES", "checks every rt_mutex"),
    ("CONFIG_DEBUG_RWSEMS", "checks the owner of every rwsem"),
    ("CONFIG_DEBUG_WW_MUTEX_SLOWPATH", "sends every ww_mutex through its slow path now and then"),
    ("CONFIG_DEBUG_ATOMIC_SLEEP", "checks for sleeping in atomic sections"),
    ("CONFIG_DEBUG_PREEMPT", "checks each use of per-CPU data"),
    ("CONFIG_DEBUG_IRQFLAGS", "checks each change of the interrupt flag"),
    ("CONFIG_TRACE_IRQFLAGS", "traces each change of the interrupt flag"),
    ("CONFIG_TRACE_PREEMPT_TOGGLE", "traces each change of the preemption count"),
    ("CONFIG_CSD_LOCK_WAIT_DEBUG", "watches every call to another CPU"),
    ("CONFIG_DEBUG_RSEQ", "checks the rseq area on each exit to user space"),
    ("CONFIG_DEBUG_ENTRY", "checks each entry into the kernel"),
    ("CONFIG_PROVE_RCU", "checks each use of RCU"),
    ("CONFIG_RCU_EQS_DEBUG", "checks each idle transition of RCU"),
    ("CONFIG_RCU_STRICT_GRACE_PERIOD", "makes grace periods as short as possible"),
    ("CONFIG_DEBUG_TIMEKEEPING", "checks each reading of the clock"),
    ("CONFIG_DEBUG_OBJECTS", "follows the life of timers and other objects"),
    ("CONFIG_DEBUG_KMEMLEAK", "follows every allocation to find leaks"),
    ("CONFIG_KASAN", "checks each memory access for its validity"),
    ("CONFIG_KCSAN", "watches memory accesses for data races"),
    ("CONFIG_KMSAN", "checks each memory access for initialisation"),
    ("CONFIG_KCOV", "records the code that each task runs"),
    ("CONFIG_GCOV_KERNEL", "counts every line that runs"),
    ("CONFIG_DEBUG_VM", "checks the memory management at each step"),
    ("CONFIG_DEBUG_VM_PGFLAGS", "checks each use of page flags"),
    ("CONFIG_DEBUG_PAGEALLOC_ENABLE_DEFAULT", "unmaps each free page"),
    ("CONFIG_PAGE_TABLE_CHECK_ENFORCED", "checks each entry of the page tables"),
    ("CONFIG_SLUB_DEBUG_ON", "checks each allocation for damage"),
    ("CONFIG_DEBUG_PER_CPU_MAPS", "checks each use of CPU masks"),
    ("CONFIG_DEBUG_SG", "checks each scatter list"),
    ("CONFIG_DEBUG_NOTIFIERS", "checks each call of notifiers"),
    ("CONFIG_DEBUG_CREDENTIALS", "checks each use of credentials"),
    ("CONFIG_DEBUG_STACK_USAGE", "measures the stack of each task that ends"),
    ("CONFIG_FAULT_INJECTION", "asks at each allocation whether it shall fail"),
    ("CONFIG_IRQSOFF_TRACER", "hooks each change of the interrupt flag"),
    ("CONFIG_PREEMPT_TRACER", "hooks each change of the preemption count"),
];

/// Debug code that is built in and asleep until the kernel command line wakes it: the option, the beginnings of
/// the words that do, and what it then does.
const WOKEN_OPTIONS: &[(&str, &[&str], &str)] = &[
    ("CONFIG_PAGE_POISONING", &["page_poison=1", "page_poison=on", "page_poison=y"], "fills each free page"),
    (
        "CONFIG_DEBUG_PAGEALLOC",
        &["debug_pagealloc=1", "debug_pagealloc=on", "debug_pagealloc=y"],
        "unmaps each free page",
    ),
    ("CONFIG_SLUB_DEBUG", &["slub_debug", "slab_debug"], "checks allocations for damage"),
    ("CONFIG_PAGE_OWNER", &["page_owner=on", "page_owner=1", "page_owner=y"], "records who took each page"),
    (
        "CONFIG_PAGE_TABLE_CHECK",
        &["page_table_check=1", "page_table_check=on"],
        "checks each page table entry",
    ),
];

/// What an option that [`KernelConfig::debug_options`] names costs, as a clause: `CONFIG_KASAN` "checks each memory
/// access for its validity".
pub fn cost_of(option: &str) -> Option<&'static str> {
    let always = DEBUG_OPTIONS.iter().map(|(name, cost)| (name, cost));
    let woken = WOKEN_OPTIONS.iter().map(|(name, _, cost)| (name, cost));
    always.chain(woken).find_map(|(name, cost)| (*name == option).then_some(*cost))
}

/// The configuration of a kernel.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KernelConfig {
    options: BTreeMap<String, String>,
}

impl KernelConfig {
    /// The configuration of the running kernel: from /proc/config.gz, or from where distributions and build trees
    /// keep it. `None` where it is nowhere.
    pub fn of_running(root: &Root) -> Option<KernelConfig> {
        let packed = std::fs::File::open(root.path("proc/config.gz"));
        if let Ok(packed) = packed {
            let mut text = String::new();
            if GzDecoder::new(packed).take(BYTES_MAX).read_to_string(&mut text).is_ok() {
                return Some(KernelConfig::parse(&text));
            }
        }
        let release = root.text("proc/sys/kernel/osrelease").ok()?;
        [
            format!("boot/config-{release}"),
            format!("lib/modules/{release}/config"),
            format!("usr/lib/modules/{release}/config"),
            format!("lib/modules/{release}/build/.config"),
        ]
        .iter()
        .find_map(|place| root.text(place).ok())
        .map(|text| KernelConfig::parse(&text))
    }

    /// Reads the text of a configuration.
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

    /// Whether an option is built in.
    pub fn has(&self, option: &str) -> bool {
        self.get(option) == Some("y")
    }

    /// The debug options that cost time in a kernel that was started with this command line.
    pub fn debug_options(&self, command_line: &str) -> Vec<String> {
        let always = DEBUG_OPTIONS.iter().map(|(name, _)| *name);
        let woken = WOKEN_OPTIONS.iter().filter(|(_, words, _)| {
            command_line.split_whitespace().any(|given| {
                // `slub_debug` alone, and with anything behind it, as `slub_debug=FZ`.
                words.iter().any(|word| {
                    given == *word || given.strip_prefix(word).is_some_and(|rest| rest.starts_with('='))
                })
            })
        });
        always
            .chain(woken.map(|(name, ..)| *name))
            .filter(|name| self.has(name))
            .map(str::to_string)
            .collect()
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
