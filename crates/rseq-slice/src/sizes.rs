/// Sizes of rseq areas, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sizes {
    /// How many the kernel uses; none before Linux 6.3.
    pub kernel_bytes: Option<u64>,
    /// How an area that holds them all must be aligned; none before Linux 6.3.
    pub kernel_alignment: Option<u64>,
    /// How many libc has registered for every thread; none if it does not, or does not say so.
    pub libc_bytes: Option<u64>,
}

impl Sizes {
    /// Whether an area of libc is long enough for the extension.
    pub fn libc_suffices(&self) -> bool {
        self.libc_bytes.is_some_and(|bytes| bytes > crate::area::LEGACY_BYTES)
    }
}
