//! Where there is no extension.

use crate::area::Area;
use crate::{Absent, Place, Sizes};

/// There is none.
pub enum Registration {}

impl Registration {
    pub fn new() -> Result<Registration, Absent> {
        Err(Absent::Platform)
    }

    pub fn area(&self) -> &Area {
        match *self {}
    }

    pub fn place(&self) -> Place {
        match *self {}
    }
}

pub fn give_back() -> bool {
    false
}

/// Whether the calling thread has an rseq area that the kernel keeps up to date, whoever has registered it.
///
/// # Errors
/// Always: this is used on Linux on x86-64 only.
pub fn is_registered() -> Result<bool, Absent> {
    Err(Absent::Platform)
}

/// Sizes of rseq areas: none is known.
pub fn sizes() -> Sizes {
    Sizes::default()
}
