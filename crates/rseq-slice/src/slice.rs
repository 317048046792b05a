use crate::Absent;
use crate::area::{Area, Ended};
use crate::here::{Registration, give_back};
use std::cell::Cell;
use std::fmt;
use std::marker::PhantomData;

/// The extension of the calling thread, from when it is enabled until this is dropped. It belongs to the thread, so it
/// cannot be sent to another:
///
/// ```compile_fail
/// fn sent(slice: rseq_slice::Slice) {
///     std::thread::spawn(move || slice.during(|| ()));
/// }
/// ```
pub struct Slice {
    registration: Registration,
    /// Gives the CPU back; false where the kernel had revoked the grant meanwhile.
    give_back: fn() -> bool,
    counts: Cell<Counts>,
    _of_this_thread: PhantomData<*const ()>,
}

/// What became of the requests of a thread, as it saw that itself at the end of each section. What comes and goes between the
/// two looks that it takes there is not seen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Sections at whose end there was a grant.
    pub grants: u64,
    /// Grants among them that the thread gave back before they ended.
    pub yields: u64,
    /// Sections at whose end there was neither a grant nor the request: the kernel had revoked a grant, or it had moved the
    /// thread to another CPU, which takes the request, too. The thread cannot tell the two apart. (The kernel can: it counts
    /// in debugfs `rseq/stats` if it was built with CONFIG_RSEQ_STATS.)
    pub lost: u64,
}

/// Whose rseq area is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// Libc's.
    Libc,
    /// One of the crate's, in place of libc's if that had one.
    Own,
}

impl Slice {
    /// Enables the extension for the calling thread.
    ///
    /// # Errors
    /// Why it cannot be had. Libc's registration is then as it was.
    pub fn enable() -> Result<Slice, Absent> {
        Registration::new().map(|registration| Slice::on(registration, give_back))
    }

    fn on(registration: Registration, give_back: fn() -> bool) -> Slice {
        Slice { registration, give_back, counts: Cell::default(), _of_this_thread: PhantomData }
    }

    /// Runs a section during which the kernel is asked for more time if that of the thread ends, also if the section
    /// panics. Sections do not nest: the end of an inner one takes back the request of the outer one.
    #[inline(always)]
    pub fn during<R>(&self, section: impl FnOnce() -> R) -> R {
        self.handle().during(section)
    }

    /// What a loop holds on to.
    #[inline(always)]
    pub fn handle(&self) -> Handle<'_> {
        Handle { area: self.registration.area(), slice: self }
    }

    /// What became of the requests so far.
    pub fn counts(&self) -> Counts {
        self.counts.get()
    }

    /// Whose area is used.
    pub fn place(&self) -> Place {
        self.registration.place()
    }

    /// The kernel took a request.
    #[cold]
    #[inline(never)]
    fn was_taken(&self, ended: Ended) {
        let yielded = ended.granted && (self.give_back)();
        let Counts { grants, yields, lost } = self.counts.get();
        self.counts.set(Counts {
            grants: grants + u64::from(ended.granted),
            yields: yields + u64::from(yielded),
            lost: lost + u64::from(!ended.granted),
        });
    }
}

impl fmt::Debug for Slice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slice")
            .field("place", &self.place())
            .field("counts", &self.counts())
            .finish_non_exhaustive()
    }
}

/// The extension of a thread as a pair of addresses, which a loop can keep in registers.
#[derive(Debug, Clone, Copy)]
pub struct Handle<'a> {
    area: &'a Area,
    slice: &'a Slice,
}

impl Handle<'_> {
    /// A section begins. Each request is to be finished once.
    #[inline(always)]
    pub fn request(self) {
        self.area.request();
    }

    /// The section has ended: takes the request back, and gives the CPU back if more time was granted.
    #[inline(always)]
    pub fn finish(self) {
        let ended = self.area.finish();
        if !ended.was_left_alone() {
            self.slice.was_taken(ended);
        }
    }

    /// Runs a section between [`request`](Handle::request) and [`finish`](Handle::finish), also if it panics.
    #[inline(always)]
    pub fn during<R>(self, section: impl FnOnce() -> R) -> R {
        self.request();
        let _finish = Finish(self);
        section()
    }

    /// Waits in the middle of a section without asking for more time meanwhile: to be used by locks around the pause
    /// between two tries, and around every system call.
    #[inline(always)]
    pub fn waiting<R>(self, wait: impl FnOnce() -> R) -> R {
        self.finish();
        let waited = wait();
        self.request();
        waited
    }
}

struct Finish<'a>(Handle<'a>);

impl Drop for Finish<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        self.0.finish();
    }
}

#[cfg(all(test, target_os = "linux", target_arch = "x86_64", target_pointer_width = "64"))]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::thread_local;

    thread_local! {
        static AREA: &'static Area = Box::leak(Box::default());
        static GIVEN_BACK: Cell<u32> = const { Cell::new(0) };
    }

    /// What the system call does while the grant lasts.
    fn in_time() -> bool {
        AREA.with(|area| area.revoke());
        GIVEN_BACK.set(GIVEN_BACK.get() + 1);
        true
    }

    /// And if it has ended just before.
    fn too_late() -> bool {
        in_time();
        false
    }

    fn with_fake(give_back: fn() -> bool) -> (Slice, &'static Area) {
        let area = AREA.with(|area| *area);
        (Slice::on(Registration::fake(area), give_back), area)
    }

    #[test]
    fn l4_the_cpu_is_given_back_once_per_grant_and_only_then() {
        let (slice, area) = with_fake(in_time);
        assert_eq!(slice.during(|| 7), 7);
        assert_eq!((GIVEN_BACK.get(), slice.counts()), (0, Counts::default()));
        slice.during(|| assert!(area.grant()));
        slice.during(|| ());
        assert_eq!(GIVEN_BACK.get(), 1);
        assert_eq!(slice.counts(), Counts { grants: 1, yields: 1, lost: 0 });
        assert_eq!(area.state(), (0, 0));
    }

    #[test]
    fn l4_user_space_does_nothing_about_a_revoked_grant() {
        let (slice, area) = with_fake(in_time);
        slice.during(|| {
            assert!(area.grant());
            area.revoke();
        });
        assert_eq!(GIVEN_BACK.get(), 0);
        assert_eq!(slice.counts(), Counts { grants: 0, yields: 0, lost: 1 });
    }

    #[test]
    fn a_grant_that_ends_just_before_it_is_given_back_was_one() {
        let (slice, area) = with_fake(too_late);
        slice.during(|| assert!(area.grant()));
        assert_eq!(slice.counts(), Counts { grants: 1, yields: 0, lost: 0 });
    }

    #[test]
    fn a_section_that_panics_takes_its_request_back() {
        let (slice, area) = with_fake(in_time);
        let result = catch_unwind(AssertUnwindSafe(|| {
            slice.during(|| {
                assert!(area.grant());
                panic!("on purpose")
            })
        }));
        assert!(result.is_err());
        assert_eq!((area.state(), slice.counts().yields), ((0, 0), 1));
    }

    #[test]
    fn nothing_is_requested_while_a_thread_waits() {
        let (slice, area) = with_fake(in_time);
        let handle = slice.handle();
        handle.during(|| {
            assert!(area.grant());
            handle.waiting(|| {
                assert_eq!(area.state(), (0, 0), "given back before the wait");
                assert!(!area.grant());
            });
            assert_eq!(area.state(), (1, 0));
        });
        assert_eq!((area.state(), slice.counts().grants), ((0, 0), 1));
    }
}
