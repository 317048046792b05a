use crate::Workload;

/// Every workload but the many after will-it-scale, in the order of `kduel list workloads`. A new one is its file and a
/// line here.
static WORKLOADS: &[&dyn Workload] = &[
    &crate::global_lock::GlobalLock,
    &crate::lock_busy::LockBusy,
    &crate::inversion::Inversion,
    &crate::torture::Torture,
    &crate::futex::wake::FutexWake,
    &crate::futex::wake_parallel::FutexWakeParallel,
    &crate::futex::hash::FutexHash,
    &crate::futex::requeue::FutexRequeue,
    &crate::futex::lock_pi::FutexLockPi,
    &crate::hackbench::Hackbench,
    &crate::schbench::old::SchbenchOld,
    &crate::schbench::new::Schbench,
    &crate::tbench::Tbench,
    &crate::sched::pipe::SchedPipe,
    &crate::sched::seccomp_notify::SeccompNotify,
    &crate::unixbench::spawn::Spawn,
    &crate::unixbench::exec_loop::ExecLoop,
    &crate::unixbench::context::Context,
    &crate::unixbench::pipe_throughput::PipeThroughput,
    &crate::unixbench::syscall_mix::SyscallMix,
    &crate::sys::threads::SysThreads,
    &crate::sys::mutex::SysMutex,
    &crate::sys::cpu::SysCpu,
    &crate::stream::Stream,
    &crate::netperf::Netperf,
    &crate::io_uring::IoUring,
    &crate::wakeup_timer::WakeupTimer,
    &crate::jobmix::JobMix,
    &crate::exec::Exec,
    &crate::mixed::Mixed,
];

/// Every workload, in the order of `kduel list workloads`.
pub fn all() -> impl Iterator<Item = &'static dyn Workload> {
    WORKLOADS.iter().copied().chain(crate::scale::all())
}

/// The workload of this name.
pub fn find(name: &str) -> Option<&'static dyn Workload> {
    all().find(|workload| workload.describe().name == name)
}

/// The names of all workloads.
pub fn names() -> Vec<String> {
    all().map(|workload| workload.describe().name).collect()
}
