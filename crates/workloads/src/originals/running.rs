use super::failed_command;
use crate::Failure;
use rustix::process::{Pid, Signal, kill_process_group};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::process::Child;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How often it is looked whether a program is ready.
const PACE: Duration = Duration::from_millis(2);

/// A program that runs in the background, such as a server. Dropping it kills it and every process that it started in
/// its process group, and reaps it. It is also killed when the thread that started it ends.
#[derive(Debug)]
pub struct Running {
    line: String,
    child: Child,
    /// A file in memory, so that a program that prints much never waits for a reader.
    output: File,
}

impl Running {
    /// `child`, the leader of a process group of its own, runs the command `line` and prints to `output`.
    pub(super) fn new(line: String, child: Child, output: File) -> Running {
        Running { line, child, output }
    }

    /// Waits until `ready`, which is told what the program has printed so far, asking again and again.
    ///
    /// # Errors
    /// When the program ends before that, and when it is not ready within `patience`; `what` says for what, as in "to
    /// listen on port 7003".
    pub fn wait_until(
        &mut self,
        what: &str,
        patience: Duration,
        mut ready: impl FnMut(&str) -> bool,
    ) -> Result<(), Failure> {
        let start = Instant::now();
        loop {
            self.check()?;
            if ready(&self.said()) {
                // What was seen may have been another's, while this one is just ending.
                return self.check();
            }
            if start.elapsed() > patience {
                return Err(Failure::Refused(format!(
                    "waited {} s for `{}` {what}, in vain",
                    patience.as_secs_f64(),
                    self.line
                )));
            }
            sleep(PACE);
        }
    }

    /// Whether it still runs.
    ///
    /// # Errors
    /// When it has ended, with how, and what it said.
    pub fn check(&mut self) -> Result<(), Failure> {
        let line = &self.line;
        match self.child.try_wait() {
            Ok(None) => Ok(()),
            Ok(Some(status)) => Err(failed_command(line, status, "", &self.said()).unwrap_or_else(|| {
                Failure::Refused(format!("`{line}` ended by itself, but it has to run on"))
            })),
            Err(error) => Err(Failure::Refused(format!("waiting for `{line}` failed: {error}"))),
        }
    }

    /// What it has printed so far.
    pub fn said(&self) -> String {
        let length = self.output.metadata().map_or(0, |metadata| metadata.len());
        let mut bytes = vec![0; length as usize];
        // It may only have grown since.
        match self.output.read_exact_at(&mut bytes, 0) {
            Ok(()) => String::from_utf8_lossy(&bytes).into_owned(),
            Err(_) => String::new(),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Where it has been reaped its number may be that of another's group by now.
        if let Ok(None) = self.child.try_wait() {
            // It may end just now, but it is not reaped before the next line.
            let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
            let _ = self.child.wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Program;
    use super::*;
    use crate::alone::{alone, leaving_nothing};
    use std::fs;

    fn start(script: &str) -> Running {
        Program::find("sh", None).unwrap().start(&["-c", script]).unwrap()
    }

    #[test]
    fn a_dropped_program_is_gone_with_those_that_it_started() {
        alone("originals::running::tests::a_dropped_program_is_gone_with_those_that_it_started", || {
            let pids = leaving_nothing(|| {
                let mut running = start("echo $$; sleep 600 & echo $!; wait");
                let both = |said: &str| said.lines().count() == 2;
                running.wait_until("to name two processes", Duration::from_secs(10), both).unwrap();
                running.said()
            });
            for pid in pids.lines() {
                let stat = format!("/proc/{pid}/stat");
                // Who reaps an orphan is not ours to say, so a zombie counts as gone.
                while fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z ")) {
                    sleep(PACE);
                }
            }
        });
    }

    #[test]
    fn a_program_that_ends_early_is_quoted() {
        let mut running = start("echo 'bind: Address already in use' >&2; exit 3");
        let error = running.wait_until("to listen", Duration::from_secs(10), |_| false).unwrap_err();
        let error = error.to_string();
        assert!(error.contains("left with status 3; it said: bind: Address already in use"), "{error}");
        let mut running = start("exit 0");
        let error = running.wait_until("to listen", Duration::from_secs(10), |_| false).unwrap_err();
        assert!(error.to_string().contains("ended by itself"), "{error}");
    }

    #[test]
    fn patience_has_an_end() {
        let mut running = start("exec sleep 600");
        let error = running.wait_until("to listen", Duration::from_millis(5), |_| false).unwrap_err();
        assert!(error.to_string().contains("to listen, in vain"), "{error}");
        running.check().unwrap();
    }
}
