//! Sets of CPUs of any size, and the CPUs that a thread may run on.

use crate::{ReadError, Root};
use std::fmt;
use std::io;
use std::str::FromStr;
use thiserror::Error;

/// CPU ids from here on are refused: no kernel has so many, and a typing error must not cost gigabytes.
const CPUS_MAX: u32 = 1 << 16;
const WORD_BITS: u32 = usize::BITS;

/// A set of CPU ids. It grows as needed: there is no largest machine that it was made for.
#[derive(Debug, Clone, Default)]
pub struct CpuSet {
    /// The layout of the kernel's masks: unsigned longs, the lowest CPUs first.
    words: Vec<usize>,
}

/// What went wrong with CPUs.
#[derive(Debug, Error)]
pub enum CpuError {
    /// The text is no list of CPUs.
    #[error("`{text}` is no list of CPUs such as `0-3,8`: {why}")]
    List {
        /// The text.
        text: String,
        /// What is wrong with it.
        why: String,
    },
    /// CPUs were asked for that this thread cannot run on.
    #[error("{0}")]
    Unusable(Unusable),
    /// What the kernel says about CPUs could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The kernel refused a system call.
    #[error("{call} failed: {source}")]
    Kernel {
        /// The system call.
        call: &'static str,
        /// What it said.
        source: io::Error,
    },
}

/// CPUs that a thread cannot run on, by reason.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Unusable {
    /// The machine does not have them.
    pub absent: CpuSet,
    /// The machine has them, and they are switched off.
    pub offline: CpuSet,
    /// They run, and the cpuset of this process leaves them out.
    pub outside: CpuSet,
}

impl CpuSet {
    /// The set without any CPU.
    pub fn new() -> CpuSet {
        CpuSet::default()
    }

    /// The set of one CPU.
    pub fn one(cpu: u32) -> CpuSet {
        CpuSet::from_iter([cpu])
    }

    /// Adds a CPU.
    pub fn insert(&mut self, cpu: u32) {
        let index = (cpu / WORD_BITS) as usize;
        if index >= self.words.len() {
            self.words.resize(index + 1, 0);
        }
        self.words[index] |= 1 << (cpu % WORD_BITS);
    }

    /// Whether the CPU is in it.
    pub fn contains(&self, cpu: u32) -> bool {
        self.words.get((cpu / WORD_BITS) as usize).is_some_and(|word| word >> (cpu % WORD_BITS) & 1 == 1)
    }

    /// The number of CPUs in it.
    pub fn len(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Whether no CPU is in it.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The CPUs in it, ascending.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        // Most words of a small set on a large machine are empty.
        let words = self.words.iter().enumerate().filter(|(_, word)| **word != 0);
        words.flat_map(|(index, word)| {
            let first = index as u32 * WORD_BITS;
            (0..WORD_BITS).filter(move |bit| word >> bit & 1 == 1).map(move |bit| first + bit)
        })
    }

    /// The set as the kernel takes it: a bit for each CPU, in words.
    pub fn words(&self) -> &[usize] {
        &self.words
    }

    /// The CPUs in it, ascending.
    pub fn to_vec(&self) -> Vec<u32> {
        self.iter().collect()
    }

    /// The CPUs that are in this set and in the other.
    #[must_use]
    pub fn and(&self, other: &CpuSet) -> CpuSet {
        self.iter().filter(|cpu| other.contains(*cpu)).collect()
    }

    /// The CPUs that are in this set and not in the other.
    #[must_use]
    pub fn without(&self, other: &CpuSet) -> CpuSet {
        self.iter().filter(|cpu| !other.contains(*cpu)).collect()
    }
}

impl PartialEq for CpuSet {
    fn eq(&self, other: &CpuSet) -> bool {
        // The number of words says how the set came to be and not what is in it.
        let used = |set: &CpuSet| set.words.iter().rposition(|word| *word != 0).map_or(0, |last| last + 1);
        self.words[..used(self)] == other.words[..used(other)]
    }
}

impl Eq for CpuSet {}

impl FromIterator<u32> for CpuSet {
    fn from_iter<I: IntoIterator<Item = u32>>(cpus: I) -> CpuSet {
        let mut set = CpuSet::new();
        for cpu in cpus {
            set.insert(cpu);
        }
        set
    }
}

impl FromStr for CpuSet {
    type Err = CpuError;

    /// Reads the kernel's list form: `0-3,8`. A text without anything is the empty set, as in the kernel's files.
    fn from_str(text: &str) -> Result<CpuSet, CpuError> {
        let wrong = |why: String| CpuError::List { text: text.chars().take(60).collect(), why };
        let id = |item: &str| match item.trim().parse::<u32>() {
            Ok(cpu) if cpu < CPUS_MAX => Ok(cpu),
            Ok(cpu) => Err(wrong(format!("no kernel has a CPU {cpu}"))),
            Err(_) => Err(wrong(format!("`{}` is no CPU id", item.trim()))),
        };
        let mut set = CpuSet::new();
        if text.trim().is_empty() {
            return Ok(set);
        }
        for item in text.split(',') {
            let (first, last) = match item.split_once('-') {
                None => (id(item)?, id(item)?),
                Some((first, last)) => (id(first)?, id(last)?),
            };
            if first > last {
                return Err(wrong(format!("the range {} runs backwards", item.trim())));
            }
            for cpu in first..=last {
                set.insert(cpu);
            }
        }
        Ok(set)
    }
}

impl fmt::Display for CpuSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut cpus = self.iter().peekable();
        let mut comma = "";
        while let Some(first) = cpus.next() {
            let mut last = first;
            while let Some(next) = cpus.next_if_eq(&(last + 1)) {
                last = next;
            }
            match last - first {
                0 => write!(f, "{comma}{first}")?,
                _ => write!(f, "{comma}{first}-{last}")?,
            }
            comma = ",";
        }
        Ok(())
    }
}

impl Unusable {
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.absent.is_empty() && self.offline.is_empty() && self.outside.is_empty()
    }

    /// Why each CPU of `asked` that is not in `effective` is missing from it.
    ///
    /// # Errors
    /// When the machine's lists of CPUs cannot be read.
    pub fn explain(root: &Root, asked: &CpuSet, effective: &CpuSet) -> Result<Unusable, CpuError> {
        let missing = asked.without(effective);
        let online = online(root)?;
        let present = read_list(root, "sys/devices/system/cpu/present").unwrap_or_else(|_| online.clone());
        Ok(Unusable {
            absent: missing.without(&present),
            offline: missing.and(&present).without(&online),
            outside: missing.and(&online),
        })
    }
}

impl fmt::Display for Unusable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str("the cpuset of this process was changed at the same time");
        }
        let mut separator = "";
        let mut say = |cpus: &CpuSet, one: &str, many: &str| match cpus.len() {
            0 => Ok(()),
            count => {
                let (noun, verb) = if count == 1 { ("CPU", one) } else { ("CPUs", many) };
                write!(f, "{separator}{noun} {cpus} {verb}")?;
                separator = "; ";
                Ok(())
            }
        };
        say(&self.absent, "does not exist on this machine", "do not exist on this machine")?;
        say(
            &self.offline,
            "is offline (write 1 to its `online` file in /sys/devices/system/cpu)",
            "are offline (write 1 to their `online` files in /sys/devices/system/cpu)",
        )?;
        say(&self.outside, "is not in the cpuset of this process", "are not in the cpuset of this process")
    }
}

/// The CPUs that are switched on.
///
/// # Errors
/// When the kernel's list cannot be read.
pub fn online(root: &Root) -> Result<CpuSet, CpuError> {
    read_list(root, "sys/devices/system/cpu/online").or_else(|error| {
        // Where /sys is not mounted, /proc still has a line for each.
        let stat = root.text("proc/stat").map_err(|_| error)?;
        Ok(stat
            .lines()
            .filter_map(|line| line.strip_prefix("cpu")?.split(' ').next()?.parse().ok())
            .filter(|cpu| *cpu < CPUS_MAX)
            .collect())
    })
}

fn read_list(root: &Root, inside: &str) -> Result<CpuSet, CpuError> {
    root.text(inside)?.parse()
}

/// The CPUs that the calling thread may run on now: its affinity, with what is offline and outside its cpuset
/// left out by the kernel.
///
/// # Errors
/// When the kernel refuses to say.
pub fn allowed() -> Result<CpuSet, CpuError> {
    let words = grow_until_it_fits(|words| {
        let length = size_of_val(words);
        // SAFETY: the kernel writes at most `length` bytes into a buffer of exactly that length. The system call
        // is made without libc, whose wrapper is bound to its own idea of the size of a mask.
        let copied = unsafe { libc::syscall(libc::SYS_sched_getaffinity, 0, length, words.as_mut_ptr()) };
        if copied < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    });
    let words = words.map_err(|source| CpuError::Kernel { call: "sched_getaffinity", source })?;
    Ok(CpuSet { words })
}

/// Calls `get` with larger and larger masks, since the kernel answers EINVAL to one that is smaller than its own
/// and does not say how large that is.
fn grow_until_it_fits(
    mut get: impl FnMut(&mut [usize]) -> Result<(), io::Error>,
) -> Result<Vec<usize>, io::Error> {
    let mut bits = 1024;
    loop {
        let mut words = vec![0; (bits / WORD_BITS) as usize];
        match get(&mut words) {
            Ok(()) => return Ok(words),
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) && bits < CPUS_MAX => bits *= 2,
            Err(error) => return Err(error),
        }
    }
}

/// Lets the calling thread run on these CPUs only, and proves that it is so.
///
/// # Errors
/// When the set is empty, or when the thread ends up with any other mask than was asked for: the error then names
/// each CPU that is missing and says whether it is absent, offline or not in the cpuset. The thread keeps
/// the mask that it had.
pub fn pin_thread(cpus: &CpuSet) -> Result<(), CpuError> {
    if cpus.is_empty() {
        return Err(CpuError::List { text: String::new(), why: "it names no CPU".into() });
    }
    let before = allowed()?;
    let effective = match set_affinity(0, cpus) {
        Ok(()) => allowed()?,
        // Not one of them can be used.
        Err(source) if source.raw_os_error() == Some(libc::EINVAL) => CpuSet::new(),
        Err(source) => return Err(CpuError::Kernel { call: "sched_setaffinity", source }),
    };
    if effective == *cpus {
        return Ok(());
    }
    // The kernel took the part of the mask that it could. A trial on fewer CPUs than asked is no trial.
    let _ = set_affinity(0, &before);
    Err(CpuError::Unusable(Unusable::explain(&Root::real(), cpus, &effective)?))
}

/// Lets another thread, by its id, run on these CPUs only, as far as the kernel lets it.
///
/// # Errors
/// When it can run on none of them, or this user may not decide over it.
pub fn pin_task(thread: u32, cpus: &CpuSet) -> Result<(), CpuError> {
    set_affinity(thread, cpus).map_err(|source| CpuError::Kernel { call: "sched_setaffinity", source })
}

/// `thread` is 0 for the one that calls.
fn set_affinity(thread: u32, cpus: &CpuSet) -> Result<(), io::Error> {
    let length = size_of_val(cpus.words.as_slice());
    // SAFETY: the kernel reads `length` bytes from a buffer of exactly that length; a mask that is shorter or longer
    // than its own is extended with zeros or cut.
    let status = unsafe { libc::syscall(libc::SYS_sched_setaffinity, thread, length, cpus.words.as_ptr()) };
    if status < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m2_the_mask_grows_until_the_kernel_takes_it() {
        // A kernel that was built for 8192 CPUs refuses every shorter mask.
        let mut tried = Vec::new();
        let words = grow_until_it_fits(|words| {
            tried.push(size_of_val(words) * 8);
            if size_of_val(words) * 8 < 8192 {
                return Err(io::Error::from_raw_os_error(libc::EINVAL));
            }
            words[4095 / WORD_BITS as usize] |= 1 << (4095 % WORD_BITS);
            Ok(())
        });
        assert_eq!(tried, [1024, 2048, 4096, 8192]);
        assert_eq!(CpuSet { words: words.unwrap() }, CpuSet::one(4095));
    }

    #[test]
    fn m2_a_kernel_that_refuses_every_mask_is_not_asked_for_ever() {
        for code in [libc::EINVAL, libc::EPERM] {
            let error = grow_until_it_fits(|_| Err(io::Error::from_raw_os_error(code))).unwrap_err();
            assert_eq!(error.raw_os_error(), Some(code));
        }
    }
}
