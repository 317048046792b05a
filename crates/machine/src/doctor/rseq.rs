//! Restartable sequences and the time slice extension on top of them.

use super::Finding;
use crate::Root;
use rseq_slice::{Absent, Place, Sizes, Slice, is_registered, sizes};

const LIBC: &str = "rseq of libc";
const KERNEL: &str = "rseq of the kernel";
const SLICE: &str = "slice extension";
/// What the first interface of rseq has: too few for the extension.
const FIRST_BYTES: u64 = 32;
const ELSEWHERE: &str = "Boot a kernel with CONFIG_RSEQ, or leave the container that hides it.";
const BUILD: &str =
    "`cargo xtask kernel` builds a kernel that has it; take that as kernel= with --target vm.";

pub(super) fn findings(root: &Root) -> Vec<Finding> {
    if !root.is_real() {
        return [KERNEL, LIBC, SLICE].map(Finding::of_a_tree).to_vec();
    }
    let sizes = sizes();
    // A thread of its own, whose area nobody else uses.
    let tried = std::thread::spawn(|| (is_registered(), Slice::enable().map(|slice| slice.place()))).join();
    let Ok((registered, place)) = tried else {
        return [KERNEL, LIBC, SLICE]
            .map(|ability| Finding::unknown(ability, "the attempt broke off"))
            .to_vec();
    };
    vec![kernel(&sizes, &registered), libc(&sizes, &registered), slice(place)]
}

fn kernel(sizes: &Sizes, registered: &Result<bool, Absent>) -> Finding {
    match (sizes.kernel_bytes, registered) {
        (_, Err(absent)) => Finding::no(KERNEL, absent.to_string()).advice(ELSEWHERE),
        (Some(bytes), Ok(_)) => {
            let aligned =
                sizes.kernel_alignment.map_or(String::new(), |bytes| format!(", aligned to {bytes}"));
            Finding::ok(KERNEL, format!("it uses {bytes} bytes{aligned}"))
        }
        // Kernels before 6.3 say no size.
        (None, Ok(_)) => Finding::ok(KERNEL, format!("the first interface, {FIRST_BYTES} bytes")),
    }
}

fn libc(sizes: &Sizes, registered: &Result<bool, Absent>) -> Finding {
    match (sizes.libc_bytes, registered) {
        (Some(bytes), Ok(true)) if bytes > FIRST_BYTES => {
            Finding::ok(LIBC, format!("{bytes} bytes registered for every thread"))
        }
        (Some(bytes), Ok(true)) => Finding::limited(
            LIBC,
            format!(
                "{bytes} bytes registered, too few for the slice extension; kduel registers more in its place"
            ),
        )
        .advice("glibc 2.41 and newer registers enough."),
        (None, Ok(true)) => Finding::limited(LIBC, "an area is registered, and libc does not say which")
            .command("GLIBC_TUNABLES=glibc.pthread.rseq=0 kduel ..."),
        (_, Ok(false)) => Finding::limited(LIBC, "no area is registered; kduel registers its own")
            .advice("glibc 2.35 and newer registers one, unless GLIBC_TUNABLES turns that off."),
        (_, Err(_)) => Finding::no(LIBC, "the kernel takes no area, see above").advice(ELSEWHERE),
    }
}

fn slice(tried: Result<Place, Absent>) -> Finding {
    match tried {
        Ok(Place::Libc) => Finding::ok(SLICE, "a thread enabled it in libc's rseq area"),
        Ok(Place::Own) => Finding::ok(SLICE, "a thread enabled it in an rseq area of its own"),
        Err(absent) => {
            let finding = Finding::no(SLICE, absent.to_string());
            match absent {
                Absent::TurnedOff => finding.advice("Boot with rseq_slice_ext=1."),
                Absent::Taken => finding.command("GLIBC_TUNABLES=glibc.pthread.rseq=0 kduel ..."),
                Absent::Forbidden { .. } => finding
                    .advice("Leave the container, or allow prctl 79 and system call 471 in its filter."),
                _ => finding.advice(BUILD),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::State;

    const NEW: Sizes = Sizes { kernel_bytes: Some(33), kernel_alignment: Some(64), libc_bytes: Some(32) };

    #[test]
    fn l5_an_area_of_32_bytes_is_called_too_short() {
        let finding = libc(&NEW, &Ok(true));
        assert_eq!(finding.state, State::Limited);
        assert!(finding.seen.contains("32 bytes registered, too few"), "{finding:?}");
        assert_eq!(libc(&Sizes { libc_bytes: Some(64), ..NEW }, &Ok(true)).state, State::Ok);
        assert!(libc(&Sizes { libc_bytes: None, ..NEW }, &Ok(false)).seen.contains("no area"));
    }

    #[test]
    fn a_size_that_the_kernel_names_does_not_prove_the_extension() {
        // 7.x names 33 bytes whether or not the extension is built in.
        assert_eq!(kernel(&NEW, &Ok(true)).seen, "it uses 33 bytes, aligned to 64");
        let finding = slice(Err(Absent::NotBuilt));
        assert_eq!(finding.state, State::No);
        assert!(finding.seen.contains("CONFIG_RSEQ_SLICE_EXTENSION"), "{finding:?}");
        assert_eq!(slice(Ok(Place::Own)).state, State::Ok);
    }
}
