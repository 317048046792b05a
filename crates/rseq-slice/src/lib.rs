//! Linux's time slice extension for threads that hold locks.
//!
//! A thread that is preempted in the middle of a critical section lets all wait who want the same lock, for as long as
//! others run on its CPU. Since Linux 7.0 a thread can say that it is in such a section. If its time is up there, the
//! kernel may grant it a few microseconds more; when the section is over, the thread gives the CPU back.
//!
//! ```
//! use rseq_slice::Slice;
//! use std::sync::Mutex;
//!
//! let balance = Mutex::new(100);
//! let add = |amount: i32| *balance.lock().unwrap() += amount;
//! // Once per thread.
//! match Slice::enable() {
//!     Ok(slice) => slice.during(|| add(1)),
//!     Err(absent) => {
//!         println!("without the extension: {absent}");
//!         add(1);
//!     }
//! }
//! assert_eq!(*balance.lock().unwrap(), 101);
//! ```
//!
//! # What happens
//!
//! Thread and kernel share a few bytes of memory, the thread's rseq area (restartable sequences, "rseq"). The thread
//! sets *request* there, does its section, and clears *request*. If the thread's time ends in between, the kernel clears
//! *request*, sets *granted* and starts a timer, and the thread goes on. At the end of its section it sees the grant and
//! gives the CPU back by a system call. If it takes too long, the kernel revokes the grant: it clears both and
//! takes the CPU. The thread asks for nothing and waits for nothing, so a request costs a few instructions; only a grant
//! costs a system call.
//!
//! **Any other system call during a grant ends it.** So wake other threads behind the section and not in it, and take the
//! request back while you wait for a lock ([`Handle::waiting`]).
//!
//! # Which rseq area
//!
//! A thread has one area, and it must be long enough for the extension. glibc 2.41 and newer registers one that is;
//! it is used. glibc 2.35 to 2.40 registers 32 bytes, too few: [`Slice::enable`] unregisters that area and
//! registers one of its own, and dropping the [`Slice`] puts libc's back. Meanwhile `sched_getcpu` of that libc asks the
//! kernel, since its own area is not kept up to date. Other libcs register none, and an area is made. An area that
//! somebody else has registered is left alone ([`Absent::Taken`]).

#[cfg(all(target_os = "linux", target_arch = "x86_64", target_pointer_width = "64"))]
#[path = "linux/mod.rs"]
mod here;
#[cfg(not(all(target_os = "linux", target_arch = "x86_64", target_pointer_width = "64")))]
#[path = "elsewhere.rs"]
mod here;

mod absent;
mod area;
mod sizes;
mod slice;

pub use absent::{Absent, Errno};
pub use here::{is_registered, sizes};
pub use sizes::Sizes;
pub use slice::{Counts, Handle, Place, Slice};
