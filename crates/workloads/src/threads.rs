//! Threads of the C library, without what the standard library adds to each of them: a signal stack of its own,
//! which is mapped at its start and unmapped at its end. The end of a thread is part of what some workloads
//! measure, and competes for the CPU with what others do.

use machine::CpuSet;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::{self, NonNull};

/// The smallest stack that the C library takes. At the end of a thread with a larger one the C library asks the kernel
/// to take the unused part back, which costs a system call and a flush of the TLB.
pub const SMALLEST_STACK_BYTES: usize = libc::PTHREAD_STACK_MIN;

/// The threads of a scope, all of which end before the scope does.
pub struct Scope<'env, T> {
    stack_bytes: usize,
    running: Vec<(libc::pthread_t, NonNull<Job<'env, T>>)>,
}

/// What a thread does, and what came of it. The thread alone touches it from its start until it is joined.
struct Job<'env, T> {
    body: Box<dyn FnMut() -> T + Send + 'env>,
    result: Option<T>,
}

/// A thread that has been joined, with everything that its body holds. Nothing of it is freed before this is
/// dropped, so that freeing need not be measured.
pub struct Ended<'env, T>(Box<Job<'env, T>>);

impl<T> Ended<'_, T> {
    /// What the body returned; `None` if it panicked.
    pub fn into_result(self) -> Option<T> {
        self.0.result
    }
}

/// Calls `conduct`, which may start threads with stacks of `stack_bytes`, and returns what it returned when all
/// of them have ended.
pub fn scope<'env, T: Send, R>(stack_bytes: usize, conduct: impl FnOnce(&mut Scope<'env, T>) -> R) -> R {
    // It joins what still runs when it is dropped, also while a panic unwinds.
    let mut scope = Scope { stack_bytes, running: Vec::new() };
    conduct(&mut scope)
}

impl<'env, T: Send> Scope<'env, T> {
    /// Starts a thread that runs `body`.
    ///
    /// # Errors
    /// When the kernel or the C library refuses another thread.
    pub fn start(&mut self, body: impl FnMut() -> T + Send + 'env) -> io::Result<()> {
        self.start_on(None, body)
    }

    /// Starts a thread that runs `body`, on these CPUs only if any are given. The C library binds it before it lets it go on
    /// to `body`.
    ///
    /// # Errors
    /// As [`Scope::start`], and when the thread may run on none of them.
    pub fn start_on(
        &mut self,
        cpus: Option<&CpuSet>,
        body: impl FnMut() -> T + Send + 'env,
    ) -> io::Result<()> {
        let job = Box::new(Job { body: Box::new(body), result: None });
        let job = NonNull::from(Box::leak(job));
        // Nothing may fail between the start of the thread and its entry in the list of those to be joined.
        self.running.reserve(1);
        match create(self.stack_bytes, cpus, job) {
            Ok(thread) => {
                self.running.push((thread, job));
                Ok(())
            }
            Err(error) => {
                // SAFETY: no thread has come to the job, so it is still this one's alone.
                drop(unsafe { Box::from_raw(job.as_ptr()) });
                Err(error)
            }
        }
    }

    /// Waits until all threads have ended, in the order in which they were started.
    pub fn join(&mut self) -> Vec<Ended<'env, T>> {
        let mut ended = Vec::with_capacity(self.running.len());
        for (thread, job) in self.running.drain(..) {
            wait_for(thread);
            // SAFETY: it came from a box, and its thread has ended.
            ended.push(Ended(unsafe { Box::from_raw(job.as_ptr()) }));
        }
        ended
    }
}

impl<T> Drop for Scope<'_, T> {
    fn drop(&mut self) {
        for (thread, job) in self.running.drain(..) {
            wait_for(thread);
            // SAFETY: as in `join`.
            drop(unsafe { Box::from_raw(job.as_ptr()) });
        }
    }
}

fn create<T>(
    stack_bytes: usize,
    cpus: Option<&CpuSet>,
    job: NonNull<Job<'_, T>>,
) -> io::Result<libc::pthread_t> {
    let checked = |error: libc::c_int| match error {
        0 => Ok(()),
        error => Err(io::Error::from_raw_os_error(error)),
    };
    // SAFETY: the attributes are initialised before they are used and destroyed once; the C library copies the CPUs, of which
    // it reads as many bytes as it is told there are. The job lives until the thread has been joined, which `Scope` does before
    // `'env` ends, and is Send because its body and result are.
    unsafe {
        let mut attributes = std::mem::zeroed();
        checked(libc::pthread_attr_init(&mut attributes))?;
        let mut thread = 0;
        let created =
            checked(libc::pthread_attr_setstacksize(&mut attributes, stack_bytes.max(SMALLEST_STACK_BYTES)))
                .and_then(|()| match cpus.map(CpuSet::words) {
                    Some(words) => checked(libc::pthread_attr_setaffinity_np(
                        &mut attributes,
                        size_of_val(words),
                        words.as_ptr().cast(),
                    )),
                    None => Ok(()),
                })
                .and_then(|()| {
                    checked(libc::pthread_create(&mut thread, &attributes, enter::<T>, job.as_ptr().cast()))
                });
        libc::pthread_attr_destroy(&mut attributes);
        created.map(|()| thread)
    }
}

extern "C" fn enter<T>(job: *mut libc::c_void) -> *mut libc::c_void {
    // SAFETY: `create` passed a job, and nobody else touches it until this thread has been joined.
    let job = unsafe { &mut *job.cast::<Job<'_, T>>() };
    job.result = catch_unwind(AssertUnwindSafe(|| (job.body)())).ok();
    ptr::null_mut()
}

fn wait_for(thread: libc::pthread_t) {
    // SAFETY: it was started, and nobody has joined it before. So this cannot fail.
    unsafe { libc::pthread_join(thread, ptr::null_mut()) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    #[test]
    fn all_threads_end_before_their_scope_and_a_panic_is_seen() {
        let count = AtomicU32::new(0);
        scope(0, |scope| {
            for _ in 0..3 {
                scope.start(|| count.fetch_add(1, Ordering::SeqCst)).unwrap();
            }
        });
        assert_eq!(count.load(Ordering::SeqCst), 3);
        let results = scope(1 << 20, |scope| {
            scope.start(|| 1).unwrap();
            scope.start(|| panic!("on purpose")).unwrap();
            scope.start(|| 3).unwrap();
            scope.join().into_iter().map(Ended::into_result).collect::<Vec<Option<i32>>>()
        });
        assert_eq!(results, [Some(1), None, Some(3)]);
    }

    #[test]
    fn a_thread_is_on_its_cpu_from_the_start() {
        let allowed = machine::cpus::allowed().unwrap();
        scope(0, |scope| {
            for cpu in allowed.iter() {
                scope
                    .start_on(Some(&CpuSet::one(cpu)), move || {
                        (cpu, machine::cpus::allowed().unwrap().to_vec())
                    })
                    .unwrap();
            }
            for ended in scope.join() {
                let (cpu, may_use) = ended.into_result().unwrap();
                assert_eq!(may_use, [cpu]);
            }
            assert!(scope.start_on(Some(&CpuSet::one(100_000)), || (0, Vec::new())).is_err());
        });
    }
}
