//! The area on which a thread asks for the extension: found or made, and put back.

use super::calls;
use super::libc_area::LibcArea;
use super::uapi::ENOTSUPP;
use super::{refused, sizes};
use crate::area::Area;
use crate::{Absent, Errno, Place};
use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ptr::NonNull;

/// The bytes up to the last that the extension needs, `granted`.
const NEEDED_BYTES: u64 = 30;

/// What every area gets at least, in length and alignment: a cache line, so that nobody else writes there.
const LINE_BYTES: u64 = 64;

/// An area of the calling thread with the extension turned on, until this is dropped.
pub struct Registration {
    area: NonNull<Area>,
    undo: Undo,
}

/// What is done at the end.
enum Undo {
    /// Libc's area was used.
    Libc {
        /// Whether somebody else had turned the extension on.
        was_on: bool,
    },
    /// An area was made.
    Own {
        layout: Layout,
        /// In place of this.
        replaced: Option<LibcArea>,
    },
    #[cfg(test)]
    Nothing,
}

impl Registration {
    pub fn new() -> Result<Registration, Absent> {
        let sizes = sizes();
        let kernel_bytes = sizes.kernel_bytes.unwrap_or(0);
        if kernel_bytes < NEEDED_BYTES {
            // Without rseq the kernel uses no bytes at all.
            return Err(is_registered().err().unwrap_or(Absent::TooOld));
        }
        let found = LibcArea::of_this_thread();
        if let Some(found) = found.filter(LibcArea::suffices) {
            let was_on = calls::has_extension() == Ok(true);
            let registration = Registration { area: found.area(), undo: Undo::Libc { was_on } };
            return turn_on().map(|()| registration);
        }
        let alignment = sizes.kernel_alignment.unwrap_or(0).max(LINE_BYTES);
        let layout = Layout::from_size_align(kernel_bytes.max(LINE_BYTES) as usize, alignment as usize)
            // Only for sizes that no kernel says.
            .map_err(|_| Absent::Failed { call: "getauxval", errno: Errno(libc::EINVAL) })?
            .pad_to_align();
        let registration = Registration::own(layout, found)?;
        turn_on().map(|()| registration)
    }

    /// Registers an area that is made for this, in place of libc's.
    fn own(layout: Layout, replaced: Option<LibcArea>) -> Result<Registration, Absent> {
        // SAFETY: the layout has at least 32 bytes.
        let memory = unsafe { alloc_zeroed(layout) };
        let Some(area) = NonNull::new(memory.cast::<Area>()) else { handle_alloc_error(layout) };
        // SAFETY: it was allocated with this layout, and is not registered where this is called.
        let free = || unsafe { dealloc(memory, layout) };
        if let Some(Err(errno)) = replaced.map(|found| found.unregister()) {
            free();
            return Err(refused("rseq", errno));
        }
        // SAFETY: the memory is freed only after the area has been unregistered, and all that is in it is atomic.
        match unsafe { calls::register(area, layout.size() as u64) } {
            Ok(()) => Ok(Registration { area, undo: Undo::Own { layout, replaced } }),
            Err(errno) => {
                free();
                replaced.iter().for_each(LibcArea::register_again);
                Err(match errno {
                    // Length and alignment are right, so there is another.
                    Errno(libc::EINVAL) => Absent::Taken,
                    errno => refused("rseq", errno),
                })
            }
        }
    }

    /// An area that no kernel knows.
    #[cfg(test)]
    pub fn fake(area: &'static Area) -> Registration {
        Registration { area: NonNull::from(area), undo: Undo::Nothing }
    }

    #[inline(always)]
    pub fn area(&self) -> &Area {
        // SAFETY: it is there until this is dropped: libc's as long as the thread lives, which this does not outlive, and
        // an own one is freed by `drop`.
        unsafe { self.area.as_ref() }
    }

    pub fn place(&self) -> Place {
        match self.undo {
            Undo::Libc { .. } => Place::Libc,
            _ => Place::Own,
        }
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        match self.undo {
            Undo::Libc { was_on: true } => {}
            Undo::Libc { was_on: false } => {
                // It was turned on, so it can be turned off.
                let _ = calls::set_extension(false);
            }
            Undo::Own { layout, replaced } => {
                // Where somebody has unregistered it, that is as good; what the kernel may still write to is kept for ever.
                if calls::unregister(self.area, layout.size() as u64).is_ok() {
                    // SAFETY: it was allocated with this layout, and the kernel knows it no longer.
                    unsafe { dealloc(self.area.as_ptr().cast(), layout) };
                }
                replaced.iter().for_each(LibcArea::register_again);
            }
            #[cfg(test)]
            Undo::Nothing => {}
        }
    }
}

/// Whether the calling thread has an rseq area that the kernel keeps up to date, whoever has registered it: by the attempt
/// to register another, which is taken back at once.
///
/// # Errors
/// When that cannot be told, because there is no rseq or it is forbidden.
pub fn is_registered() -> Result<bool, Absent> {
    /// As the first interface, which every kernel has, wants it.
    #[repr(align(32))]
    struct Aligned {
        _area: Area,
    }

    match Registration::own(Layout::new::<Aligned>(), None) {
        Ok(_) => Ok(false),
        Err(Absent::Taken) => Ok(true),
        Err(absent) => Err(absent),
    }
}

/// Turns the extension on for the area that is registered, and makes sure that a grant can be given back.
fn turn_on() -> Result<(), Absent> {
    calls::set_extension(true).map_err(|errno| match errno.0 {
        // A kernel that was built with it answers the question also where it is turned off.
        ENOTSUPP if calls::has_extension() == Err(Errno(ENOTSUPP)) => Absent::NotBuilt,
        ENOTSUPP => Absent::TurnedOff,
        // No such prctl.
        libc::EINVAL => Absent::TooOld,
        _ => refused("prctl(PR_RSEQ_SLICE_EXTENSION)", errno),
    })?;
    calls::slice_yield().map(drop).map_err(|errno| refused("rseq_slice_yield", errno))
}
