//! Locks of the C library, as C programs use them.

use super::broken;
use crate::Failure;
use std::cell::UnsafeCell;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A mutex of the C library and what it guards, in one cache line.
#[repr(C, align(64))]
pub struct Guarded {
    mutex: UnsafeCell<libc::pthread_mutex_t>,
    /// Atomic only in name: it is loaded and stored, as C does with a plain variable.
    value: AtomicU64,
}

// SAFETY: the mutex is reached through functions of the C library only, which are made for being called from many
// threads.
unsafe impl Sync for Guarded {}
// SAFETY: a mutex that nobody holds is plain data.
unsafe impl Send for Guarded {}

impl Default for Guarded {
    fn default() -> Guarded {
        Guarded { mutex: UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER), value: AtomicU64::new(0) }
    }
}

impl Guarded {
    /// Makes it one that processes can share, in memory that they share. Must come before anybody uses it.
    ///
    /// # Errors
    /// When the C library cannot.
    pub fn share_among_processes(&self) -> Result<(), Failure> {
        // SAFETY: the attributes are initialised before they are used and destroyed once, and nobody uses the
        // mutex yet.
        let error = unsafe {
            let mut attributes = std::mem::zeroed();
            match libc::pthread_mutexattr_init(&mut attributes) {
                0 => {
                    let errors = [
                        libc::pthread_mutexattr_setpshared(&mut attributes, libc::PTHREAD_PROCESS_SHARED),
                        libc::pthread_mutex_init(self.mutex.get(), &attributes),
                        libc::pthread_mutexattr_destroy(&mut attributes),
                    ];
                    errors.into_iter().find(|error| *error != 0).unwrap_or(0)
                }
                error => error,
            }
        };
        checked("pthread_mutex_init", error)
    }

    /// Does `update` with the mutex held.
    ///
    /// # Errors
    /// When the C library does not lock or unlock it.
    #[inline]
    pub fn locked(&self, update: impl FnOnce(&AtomicU64)) -> Result<(), Failure> {
        // SAFETY: the mutex is initialised and at one place as long as it is borrowed.
        checked("pthread_mutex_lock", unsafe { libc::pthread_mutex_lock(self.mutex.get()) })?;
        update(&self.value);
        // SAFETY: as above, and this thread holds it.
        checked("pthread_mutex_unlock", unsafe { libc::pthread_mutex_unlock(self.mutex.get()) })
    }

    /// What it guards.
    pub fn value(&self) -> u64 {
        self.value.load(Relaxed)
    }
}

#[inline]
fn checked(call: &str, error: libc::c_int) -> Result<(), Failure> {
    match error {
        0 => Ok(()),
        error => Err(broken(call, io::Error::from_raw_os_error(error))),
    }
}

/// Adds 1, as C does with a plain variable.
#[inline]
pub fn increment(value: &AtomicU64) {
    value.store(value.load(Relaxed) + 1, Relaxed);
}

/// A semaphore of the C library with the value 1, that one task uses. It lies on the heap, as it must not move.
pub struct Semaphore(Box<UnsafeCell<libc::sem_t>>);

impl Semaphore {
    /// The semaphore.
    ///
    /// # Errors
    /// When the C library cannot make it.
    pub fn new() -> Result<Semaphore, Failure> {
        // SAFETY: the place is valid for a semaphore, and the call initialises it.
        let (semaphore, status) = unsafe {
            let semaphore = Box::new(UnsafeCell::new(std::mem::zeroed()));
            let status = libc::sem_init(semaphore.get(), 0, 1);
            (semaphore, status)
        };
        status_of("sem_init", status).map(|()| Semaphore(semaphore))
    }

    /// Takes 1 from its value and gives it back.
    ///
    /// # Errors
    /// When the C library does not.
    #[inline]
    pub fn wait_and_post(&self) -> Result<(), Failure> {
        // SAFETY: it was initialised and has not moved since.
        status_of("sem_wait", unsafe { libc::sem_wait(self.0.get()) })?;
        // SAFETY: as above.
        status_of("sem_post", unsafe { libc::sem_post(self.0.get()) })
    }

    /// Its value.
    ///
    /// # Errors
    /// When the C library does not tell.
    pub fn value(&self) -> Result<i32, Failure> {
        let mut value = 0;
        // SAFETY: it was initialised, and the value is written to a place of our own.
        status_of("sem_getvalue", unsafe { libc::sem_getvalue(self.0.get(), &mut value) })?;
        Ok(value)
    }
}

impl Drop for Semaphore {
    fn drop(&mut self) {
        // SAFETY: nobody waits for it, as it is this one's alone.
        unsafe { libc::sem_destroy(self.0.get()) };
    }
}

#[inline]
fn status_of(call: &str, status: libc::c_int) -> Result<(), Failure> {
    match status {
        0 => Ok(()),
        _ => Err(broken(call, io::Error::last_os_error())),
    }
}
