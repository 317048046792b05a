//! System V semaphores and shared memory: whether a trial's objects will fit, and the removal of those whose makers died.
//!
//! Such an object outlives its maker. The kernel knows who made a segment but not who made a set of semaphores, so the
//! objects of a trial have keys that say it: [`system_v_key`].

use crate::{LimitError, Root, Shortage, owner};
use rustix::process::geteuid;
use std::io;

/// What the keys of all objects of trials begin with; the other 24 bits hold a process id, which has 22 at most.
const PREFIX: u32 = 0x6b00_0000;
const PREFIX_MASK: u32 = 0xff00_0000;

/// How many ids of a kind the kernel has, unless it was booted with `ipcmni_extend`.
const IDS: u64 = 32_768;

/// What a trial is going to need, all at the same time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SystemVNeed {
    /// Sets of one semaphore.
    pub sets: u64,
    /// Segments of shared memory.
    pub segments: u64,
    /// Bytes of a segment.
    pub segment_bytes: u64,
}

/// Makes sure that `need` fits into the limits of System V objects, beside those that there are.
///
/// # Errors
/// With every limit that is too low, its value, and the knob and the command that raise it; a kernel without such
/// objects counts as one that has room for none.
pub fn room_for_system_v(root: &Root, need: &SystemVNeed) -> Result<(), LimitError> {
    let mut shortages = Vec::new();
    let mut wants = |limit: &str, value: u64, wanted: u64, remedy: String| {
        if value < wanted {
            shortages.push(Shortage { limit: limit.into(), value, wanted, remedy });
        }
    };
    let in_use = |table: &str| root.text(table).map(|table| rows(&table).count() as u64);
    let absent = || "with a kernel that has CONFIG_SYSVIPC".to_string();

    let limits = root.text("proc/sys/kernel/sem").ok().as_deref().and_then(four);
    match (limits, in_use("proc/sysvipc/sem")) {
        (Some([per_set, all, per_operation, sets]), Ok(in_use)) => {
            let wanted = in_use.saturating_add(need.sets);
            let words = format!("{per_set} {} {per_operation} {}", all.max(wanted), sets.max(wanted));
            wants(
                "the number of semaphore sets, 4th in kernel.sem,",
                sets,
                wanted,
                ids("sem", &words, wanted),
            );
            wants("the number of semaphores, 2nd in kernel.sem,", all, wanted, sysctl("sem", &words));
        }
        _ => wants("the number of System V semaphore sets", 0, need.sets, absent()),
    }
    let number = |name: &str| root.number(format!("proc/sys/kernel/{name}"));
    match (number("shmmni"), in_use("proc/sysvipc/shm")) {
        (Ok(segments), Ok(in_use)) => {
            let wanted = in_use.saturating_add(need.segments);
            wants("kernel.shmmni", segments, wanted, ids("shmmni", &wanted.to_string(), wanted));
        }
        _ => wants("the number of System V memory segments", 0, need.segments, absent()),
    }
    if let Ok(largest) = number("shmmax") {
        wants(
            "kernel.shmmax",
            largest,
            need.segment_bytes,
            sysctl("shmmax", &need.segment_bytes.to_string()),
        );
    }
    if let Ok(pages) = number("shmall") {
        let page = rustix::param::page_size() as u64;
        let wanted = need.segments.saturating_mul(need.segment_bytes.div_ceil(page));
        wants("kernel.shmall", pages, wanted, sysctl("shmall", &wanted.to_string()));
    }
    if shortages.is_empty() { Ok(()) } else { Err(LimitError { shortages }) }
}

/// What raises a limit: for the trials alone, and for good.
fn sysctl(name: &str, words: &str) -> String {
    format!("`sysctl.kernel.{name}={words}` as a knob of the variant, or `sysctl -w kernel.{name}='{words}'`")
}

/// What raises a limit on ids.
fn ids(name: &str, words: &str, wanted: u64) -> String {
    match wanted > IDS {
        true => {
            format!("beyond {IDS} only with the boot argument ipcmni_extend; then {}", sysctl(name, words))
        }
        false => sysctl(name, words),
    }
}

/// The key of the objects that the process `pid` makes for a trial.
pub fn system_v_key(pid: u32) -> i32 {
    (PREFIX | (pid & !PREFIX_MASK)) as i32
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Semaphores,
    Segment,
}

/// Removes the objects of this user whose key is that of a trial's process which has died. Objects of a process in
/// another pid namespace are left alone, since it cannot be seen whether that lives. Names what was removed.
pub(crate) fn remove_ownerless() -> Vec<String> {
    let root = Root::real();
    let mut removed = Vec::new();
    for (kind, table, uid_column) in
        [(Kind::Segment, "proc/sysvipc/shm", 7), (Kind::Semaphores, "proc/sysvipc/sem", 4)]
    {
        let Ok(table) = root.text(table) else { continue };
        for row in rows(&table) {
            let field = |column: usize| row.get(column).and_then(|word| word.parse::<i64>().ok());
            let (Some(key), Some(id), Some(uid)) = (field(0), field(1), field(uid_column)) else { continue };
            let (key, id) = (key as u32, id as i32);
            let maker = key & !PREFIX_MASK;
            if key & PREFIX_MASK != PREFIX
                || uid != i64::from(geteuid().as_raw())
                || owner::can_act(&root, maker)
            {
                continue;
            }
            let made_here = match kind {
                Kind::Segment => field(4) == Some(i64::from(maker)),
                // The kernel tells who used a set last. One that nobody has used yet, whose time of the last use is 0, was
                // made a moment before its maker died.
                Kind::Semaphores => match last_user(id) {
                    Some(0) => field(8) == Some(0),
                    Some(pid) => pid == i64::from(maker),
                    None => false,
                },
            };
            if made_here && remove(kind, id).is_ok() {
                let name = match kind {
                    Kind::Semaphores => "semaphore set",
                    Kind::Segment => "shared memory segment",
                };
                removed.push(format!("System V {name} {id} of process {maker}"));
            }
        }
    }
    removed
}

/// The lines below the heading of a table in /proc/sysvipc, in words.
fn rows(table: &str) -> impl Iterator<Item = Vec<&str>> {
    table.lines().skip(1).map(|line| line.split_whitespace().collect())
}

fn four(text: &str) -> Option<[u64; 4]> {
    let numbers: Vec<u64> = text.split_whitespace().map_while(|word| word.parse().ok()).collect();
    numbers.try_into().ok()
}

fn last_user(id: i32) -> Option<i64> {
    // SAFETY: The command takes no argument and touches no memory of ours.
    let pid = unsafe { libc::semctl(id, 0, libc::GETPID) };
    (pid >= 0).then_some(pid.into())
}

fn remove(kind: Kind, id: i32) -> io::Result<()> {
    // SAFETY: Both commands touch no memory of ours: neither looks at its last argument.
    let result = unsafe {
        match kind {
            Kind::Semaphores => libc::semctl(id, 0, libc::IPC_RMID),
            Kind::Segment => libc::shmctl(id, libc::IPC_RMID, std::ptr::null_mut()),
        }
    };
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
