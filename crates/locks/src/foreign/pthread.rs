use crate::{Lock, Unavailable};
use libc::{
    PTHREAD_MUTEX_NORMAL, PTHREAD_PRIO_INHERIT, PTHREAD_PRIO_NONE, pthread_mutex_destroy, pthread_mutex_init,
    pthread_mutex_lock, pthread_mutex_t, pthread_mutex_unlock, pthread_mutexattr_destroy,
    pthread_mutexattr_init, pthread_mutexattr_setprotocol, pthread_mutexattr_settype, pthread_mutexattr_t,
};
use std::cell::UnsafeCell;
use std::fmt;
use std::io;
use std::mem::MaybeUninit;

/// The mutex of the C library.
#[derive(Debug)]
pub struct Pthread(Mutex);

/// The mutex of the C library with priority inheritance: while it is awaited, its owner runs with the priority of
/// the most urgent waiter. Every contended acquisition and release goes through the kernel.
#[derive(Debug)]
pub struct PthreadPi(Mutex);

// SAFETY: the section runs between lock and unlock of the mutex.
unsafe impl Lock for Pthread {
    const NAME: &'static str = "pthread";
    const SUMMARY: &'static str = "pthread_mutex_t, the default kind: sleeps on a futex";
    type Context = ();

    fn new() -> Result<Self, Unavailable> {
        Ok(Pthread(Mutex::new(Self::NAME, PTHREAD_PRIO_NONE)?))
    }

    #[inline(always)]
    fn with<R>(&self, _: &mut (), section: impl FnOnce() -> R) -> R {
        self.0.with(section)
    }
}

// SAFETY: as above.
unsafe impl Lock for PthreadPi {
    const NAME: &'static str = "pthread-pi";
    const SUMMARY: &'static str =
        "pthread_mutex_t with PTHREAD_PRIO_INHERIT: the owner inherits a waiter's priority";
    type Context = ();

    fn new() -> Result<Self, Unavailable> {
        Ok(PthreadPi(Mutex::new(Self::NAME, PTHREAD_PRIO_INHERIT)?))
    }

    #[inline(always)]
    fn with<R>(&self, _: &mut (), section: impl FnOnce() -> R) -> R {
        self.0.with(section)
    }
}

struct Mutex(UnsafeCell<pthread_mutex_t>);

// SAFETY: a mutex is there to be used by several threads.
unsafe impl Send for Mutex {}
// SAFETY: as above.
unsafe impl Sync for Mutex {}

impl Mutex {
    fn new(name: &'static str, protocol: libc::c_int) -> Result<Mutex, Unavailable> {
        let checked = |code: libc::c_int| match code {
            0 => Ok(()),
            code => Err(Unavailable { name, why: io::Error::from_raw_os_error(code).to_string() }),
        };
        let mut attributes = MaybeUninit::<pthread_mutexattr_t>::uninit();
        let mut mutex = MaybeUninit::<pthread_mutex_t>::uninit();
        // SAFETY: the attributes are initialised first, used for the mutex, and destroyed once. The mutex is moved
        // after its initialisation but before its first use; the C libraries of Linux keep no address of a mutex
        // that is neither held nor robust.
        unsafe {
            checked(pthread_mutexattr_init(attributes.as_mut_ptr()))?;
            // Locking it twice must wait for ever, as `Lock` says, and not be undefined.
            let made = checked(pthread_mutexattr_settype(attributes.as_mut_ptr(), PTHREAD_MUTEX_NORMAL))
                .and_then(|()| checked(pthread_mutexattr_setprotocol(attributes.as_mut_ptr(), protocol)))
                .and_then(|()| checked(pthread_mutex_init(mutex.as_mut_ptr(), attributes.as_ptr())));
            pthread_mutexattr_destroy(attributes.as_mut_ptr());
            made?;
            Ok(Mutex(UnsafeCell::new(mutex.assume_init())))
        }
    }

    #[inline(always)]
    fn with<R>(&self, section: impl FnOnce() -> R) -> R {
        // SAFETY: the mutex is initialised and does not move while it is borrowed.
        if unsafe { pthread_mutex_lock(self.0.get()) } != 0 {
            // The section must not run without the lock, and there is nobody to tell.
            std::process::abort();
        }
        let _unlock = Unlock(self);
        section()
    }
}

struct Unlock<'a>(&'a Mutex);

impl Drop for Unlock<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: made right after this thread locked the mutex, and dropped once.
        unsafe { pthread_mutex_unlock(self.0.0.get()) };
    }
}

impl Drop for Mutex {
    fn drop(&mut self) {
        // SAFETY: nobody holds a mutex that is dropped.
        unsafe { pthread_mutex_destroy(self.0.get()) };
    }
}

impl fmt::Debug for Mutex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mutex").finish_non_exhaustive()
    }
}
