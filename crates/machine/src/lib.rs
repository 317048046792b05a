//! The machine: typed readers of its state, knobs and their undo journal.
//!
//! Every reader takes a [`Root`], so that it runs on recorded and synthetic trees as on the real machine. What a
//! kernel does not have, or does not let this user see, is absent and never a made-up value.

mod caches;
pub mod cgroup;
mod clocksource;
mod cpu_ticks;
pub mod cpus;
pub mod doctor;
mod facts;
mod guest;
mod kernel_log;
pub mod knobs;
mod leftovers;
mod limits;
mod memory;
pub mod modules;
mod mounts;
mod owner;
mod programs;
mod proxy_execution;
mod root;
mod running_config;
mod scheduling;
mod scratch;
mod slice;
mod strays;
mod system_v;
mod trial_cgroup;
pub mod undo;
mod undo_file;
mod usage;
mod value;

pub use caches::last_level_cache_bytes;
pub use cgroup::{Cgroups, Layout, PidsLimit, Quota, Throttling};
pub use clocksource::{clocksource, settled_clocksource};
pub use cpus::{CpuError, CpuSet, Unusable};
pub use experiment::{KernelConfig, cost_of};
pub use facts::facts;
pub use guest::{ORDER_PATH, is_guest};
pub use kernel_log::{KernelLog, oom_killed_since};
pub use knobs::{KnobProblem, Why, apply_to_self};
pub use leftovers::remove_leftovers;
pub use limits::{LimitError, Need, Shortage, room_for};
pub use memory::{MemoryShortage, memory_for};
pub use programs::on_path;
pub use proxy_execution::{ProxyExecution, ProxyState};
pub use root::{ReadError, Root};
pub use running_config::running_config;
pub use scheduling::SchedulingError;
pub use scratch::Scratch;
pub use slice::{SLICE_LENGTH, SliceCounts, slice_length_ns};
pub use strays::{Stray, has_children, kill_ownerless, kill_strays, new_token, reap_orphans};
pub use system_v::{SystemVNeed, room_for_system_v, system_v_key};
pub use trial_cgroup::{CpuStat, TrialCgroup, join_cgroup};
pub use undo::{Recovery, Setting, Undo, UndoError, Unrestored, recover};
pub use usage::{Rusage, Snapshot, Whose, rusage, usage_of_self};
