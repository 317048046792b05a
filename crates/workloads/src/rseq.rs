//! Whether libc has registered an rseq area for every thread, as the knob `rseq` wants it or not.

use crate::Trial;
use rseq_slice::{Absent, is_registered, sizes};

/// Leaves in `trial` the evidence for the knob `rseq`: `on` or `off`. It is what the kernel says of the calling thread, not
/// what was asked of libc, which may be deaf to it.
pub fn check_rseq(wanted: &str, trial: &mut Trial) {
    let (ran, seen) = judge(wanted == "on", is_registered(), sizes().libc_bytes);
    trial.evidence(&format!("rseq={wanted}"), ran, seen);
}

fn judge(wanted: bool, registered: Result<bool, Absent>, libc_bytes: Option<u64>) -> (bool, String) {
    let registered = match registered {
        Ok(registered) => registered,
        // Without rseq no thread has an area.
        Err(Absent::NoRseq) => false,
        Err(absent) => return (false, absent.to_string()),
    };
    let seen = match (wanted, registered) {
        (true, true) => match libc_bytes {
            Some(bytes) => format!("libc has registered {bytes} bytes for every thread"),
            None => "an area is registered".into(),
        },
        (false, false) => "the threads have no rseq area".into(),
        (true, false) => {
            "no rseq area is registered: musl registers none, nor does glibc before 2.35, nor a kernel without CONFIG_RSEQ"
                .into()
        }
        (false, true) => {
            "an rseq area is registered all the same: this libc does not heed GLIBC_TUNABLES, which glibc does since 2.35"
                .into()
        }
    };
    (wanted == registered, seen)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_says_decides_and_not_what_was_asked_for() {
        assert_eq!(
            judge(true, Ok(true), Some(32)),
            (true, "libc has registered 32 bytes for every thread".into())
        );
        assert!(judge(false, Ok(false), None).0);
        let (ran, seen) = judge(true, Ok(false), None);
        assert!(!ran && seen.contains("musl"), "{seen}");
        let (ran, seen) = judge(false, Ok(true), Some(32));
        assert!(!ran && seen.contains("GLIBC_TUNABLES"), "{seen}");
        assert!(judge(false, Err(Absent::NoRseq), None).0 && !judge(true, Err(Absent::NoRseq), None).0);
        assert!(!judge(false, Err(Absent::Platform), None).0, "it is not known");
    }
}
