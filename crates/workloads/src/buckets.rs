//! The hash of futexes that a process can have to itself, since Linux 6.16.

use crate::{Failure, Trial};
use std::io;

const PR_FUTEX_HASH: i32 = 78;
const SET_SLOTS: u64 = 1;
const GET_SLOTS: u64 = 2;

/// The hash that was asked for.
pub enum Buckets {
    /// None: the kernel decides.
    LeftAlone,
    /// So many slots, 0 for the global hash.
    Asked(u64),
    /// The kernel has no hash for a single process.
    Lacking(io::Error),
}

impl Buckets {
    /// Asks the kernel for `count` slots, or leaves the hash alone if that is negative.
    ///
    /// # Errors
    /// When the number can be none, or the kernel refuses it.
    pub fn set(count: i64) -> Result<Buckets, Failure> {
        let Ok(count) = u64::try_from(count) else {
            return Ok(Buckets::LeftAlone);
        };
        if count == 1 || (count > 0 && !count.is_power_of_two()) {
            return Err(Failure::Refused(format!(
                "buckets={count} cannot be: it takes a power of two from 2, 0 for the global hash, or -1"
            )));
        }
        if let Err(error) = call(GET_SLOTS, 0) {
            return Ok(Buckets::Lacking(error));
        }
        call(SET_SLOTS, count)
            .map_err(|error| Failure::Refused(format!("the kernel refuses {count} buckets: {error}")))?;
        Ok(Buckets::Asked(count))
    }

    /// Says in `trial` which hash was in use; to be called when the threads have run.
    pub fn report(&self, trial: &mut Trial) {
        let found = call(GET_SLOTS, 0);
        if let Ok(found) = found {
            trial.counter("buckets", found as f64);
        }
        match (self, found) {
            (Buckets::LeftAlone, _) => {}
            (Buckets::Asked(asked), Ok(found)) => {
                trial.evidence("buckets", found == *asked, in_words(found));
            }
            (Buckets::Asked(_), Err(error)) => {
                trial.evidence("buckets", false, format!("PR_FUTEX_HASH: {error}"))
            }
            (Buckets::Lacking(error), _) => trial.evidence(
                "buckets",
                false,
                format!("this kernel has no futex hash for a single process (PR_FUTEX_HASH: {error})"),
            ),
        }
    }
}

fn in_words(slots: u64) -> String {
    match slots {
        0 => "the global hash".into(),
        _ => format!("{slots} hash buckets"),
    }
}

fn call(command: u64, argument: u64) -> io::Result<u64> {
    // SAFETY: the call takes and gives only numbers.
    let answer = unsafe { libc::prctl(PR_FUTEX_HASH, command, argument, 0_u64, 0_u64) };
    u64::try_from(answer).map_err(|_| io::Error::last_os_error())
}
