//! The CPUs on which message threads and workers run.

use crate::Failure;
use crate::shared::{Semantics, own_cpu, pin};
use experiment::counted;
use machine::CpuSet;

/// Where threads are pinned to; nothing is a thread that is left to the scheduler.
#[derive(Debug, Clone, PartialEq)]
pub struct Places {
    /// Message thread i runs on the i-th of these, round and round.
    message: Vec<u32>,
    /// Every worker may run on all of these.
    workers: Option<CpuSet>,
}

impl Places {
    /// What `message` and `workers` say: a list of CPUs, `auto`, or nothing. If one of them is `auto`, both are.
    ///
    /// # Errors
    /// When a list is none or names a CPU that is not among `usable`, and when `auto` leaves no CPU for the workers.
    pub fn new(
        message: &str,
        workers: &str,
        message_threads: usize,
        usable: &[u32],
        semantics: Semantics,
    ) -> Result<Places, Failure> {
        if message == "auto" || workers == "auto" {
            return Places::auto(message_threads, usable, semantics);
        }
        let list = |name: &str, text: &str| -> Result<Option<CpuSet>, Failure> {
            if text.is_empty() {
                return Ok(None);
            }
            let wrong = |why: String| Failure::Refused(format!("{name}={text} cannot be: {why}"));
            let cpus: CpuSet = text.parse().map_err(|error: machine::CpuError| wrong(error.to_string()))?;
            let other = cpus.iter().find(|cpu| !usable.contains(cpu));
            match other {
                Some(cpu) => Err(wrong(format!("this trial may not use CPU {cpu}"))),
                None => Ok(Some(cpus)),
            }
        };
        let message = list("message-cpus", message)?.map(|cpus| cpus.to_vec()).unwrap_or_default();
        Ok(Places { message, workers: list("worker-cpus", workers)? })
    }

    /// A CPU for each message thread, and all others for the workers. The original says so, and gives them all CPUs.
    fn auto(message_threads: usize, usable: &[u32], semantics: Semantics) -> Result<Places, Failure> {
        let (message, others) = usable.split_at(message_threads.min(usable.len()));
        let workers: &[u32] = match semantics {
            Semantics::Original => usable,
            Semantics::Strict => others,
        };
        if workers.is_empty() {
            return Err(Failure::Refused(format!(
                "`auto` with {} leaves none of {} for the workers; take fewer",
                counted(message_threads, "message thread"),
                counted(usable.len(), "CPU")
            )));
        }
        Ok(Places { message: message.to_vec(), workers: Some(workers.iter().copied().collect()) })
    }

    /// Pins the calling thread, which is message thread `index`.
    pub fn pin_message_thread(&self, index: usize) -> Result<(), Failure> {
        if self.message.is_empty() { Ok(()) } else { own_cpu(&self.message, index) }
    }

    /// Pins the calling thread, which is a worker.
    pub fn pin_worker(&self) -> Result<(), Failure> {
        self.workers.as_ref().map_or(Ok(()), pin)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Semantics::{Original, Strict};

    fn places(message: &str, workers: &str, semantics: Semantics) -> Result<Places, Failure> {
        Places::new(message, workers, 2, &[0, 1, 4, 9], semantics)
    }

    #[test]
    fn lists_and_auto_are_understood() {
        let nowhere = Places { message: Vec::new(), workers: None };
        assert_eq!(places("", "", Strict).unwrap(), nowhere);
        let listed = Places { message: vec![0, 4], workers: Some([1, 9].into_iter().collect()) };
        assert_eq!(places("0,4", "1,9", Strict).unwrap(), listed);
        let auto = |workers: &[u32]| Places {
            message: vec![0, 1],
            workers: Some(workers.iter().copied().collect()),
        };
        assert_eq!(places("auto", "", Original).unwrap(), auto(&[0, 1, 4, 9]));
        assert_eq!(places("", "auto", Strict).unwrap(), auto(&[4, 9]));
    }

    #[test]
    fn what_cannot_be_is_named() {
        for (message, workers, part) in [("x", "", "message-cpus=x"), ("", "1-4", "CPU 2")] {
            let error = places(message, workers, Strict).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
        let all = Places::new("auto", "", 4, &[0, 1, 4, 9], Strict).unwrap_err().to_string();
        assert!(all.contains("leaves none of 4 CPUs"), "{all}");
    }
}
