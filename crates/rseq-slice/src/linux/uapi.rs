//! Numbers of the kernel's interface, as of Linux 7.3, which the crate `libc` does not have.

/// The prctl of the extension, with its two commands and what the second takes.
pub const PR_RSEQ_SLICE_EXTENSION: i32 = 79;
pub const PR_RSEQ_SLICE_EXTENSION_GET: u64 = 1;
pub const PR_RSEQ_SLICE_EXTENSION_SET: u64 = 2;
pub const PR_RSEQ_SLICE_EXT_ENABLE: u64 = 1;

/// The system call that gives a grant back. It has this number on every architecture.
pub const SYS_RSEQ_SLICE_YIELD: i64 = 471;

/// Entries of the auxiliary vector: how many bytes of an rseq area the kernel uses, and how it must be aligned.
pub const AT_RSEQ_FEATURE_SIZE: u64 = 27;
pub const AT_RSEQ_ALIGN: u64 = 28;

/// The flag of the system call `rseq` that ends a registration.
pub const RSEQ_FLAG_UNREGISTER: i64 = 1;

/// What glibc passes on x86: the kernel aborts a restartable sequence only to code that this stands before.
pub const RSEQ_SIGNATURE: i64 = 0x5305_3053;

/// What a kernel without the extension answers, and one that has it turned off. It is no error of user space, so libc has
/// no name for it.
pub const ENOTSUPP: i32 = 524;
