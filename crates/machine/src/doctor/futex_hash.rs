//! Whether a process has buckets of its own for its private futexes.

use super::Finding;
use crate::Root;
use std::io;

const ABILITY: &str = "futex private hash";
const PR_FUTEX_HASH: libc::c_int = 78;
const GET_SLOTS: libc::c_ulong = 2;

/// Asked of a second thread: a process has no buckets of its own before it has one.
pub(super) fn finding(root: &Root) -> Finding {
    if !root.is_real() {
        return Finding::of_a_tree(ABILITY);
    }
    judge(std::thread::spawn(slots).join().unwrap_or_else(|_| Err(io::ErrorKind::Other.into())))
}

fn judge(slots: io::Result<u32>) -> Finding {
    match slots {
        Ok(0) => Finding::limited(
            ABILITY,
            "prctl 78 answers, and this process of two threads has no buckets of its own",
        )
        .advice("The kernel has the call without the feature; boot one with CONFIG_FUTEX_PRIVATE_HASH."),
        Ok(slots) => Finding::ok(ABILITY, format!("prctl 78 says {slots} buckets in a process of two threads")),
        Err(error) => Finding::no(ABILITY, format!("prctl 78 says: {error}")).advice(
            "Boot Linux 6.16 or later with CONFIG_FUTEX_PRIVATE_HASH; here all processes share one set of buckets.",
        ),
    }
}

fn slots() -> io::Result<u32> {
    let none: libc::c_ulong = 0;
    // SAFETY: this command takes numbers only and changes nothing.
    let slots = unsafe { libc::prctl(PR_FUTEX_HASH, GET_SLOTS, none, none, none) };
    u32::try_from(slots).map_err(|_| io::Error::last_os_error())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::State;

    #[test]
    fn a_kernel_without_the_call_does_not_have_the_ability() {
        assert_eq!(judge(Err(io::Error::from_raw_os_error(libc::EINVAL))).state, State::No);
        assert_eq!(judge(Ok(0)).state, State::Limited);
        let finding = judge(Ok(16));
        assert_eq!(finding.state, State::Ok);
        assert!(finding.seen.contains("16 buckets"));
    }
}
