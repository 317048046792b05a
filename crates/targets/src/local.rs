use crate::{Target, TargetError};
use agent::{AGENT_ARGUMENT, Client, Stop, TOKEN_VARIABLE};
use experiment::Variant;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The time that an agent has to put everything back after it was told to leave.
const FAREWELL: Duration = Duration::from_secs(20);

/// This machine: the agent is a child of the coordinator, over two pipes.
#[derive(Debug)]
pub struct Local {
    undo: PathBuf,
    token: String,
    stop: Stop,
    open: Option<(Child, Client)>,
}

impl Local {
    /// Nothing is started yet. `undo` is the directory of the undo journals; `token` marks every process of the
    /// run's trials.
    pub fn new(undo: PathBuf, token: String, stop: Stop) -> Local {
        Local { undo, token, stop, open: None }
    }

    fn start(&self) -> Result<(Child, Client), TargetError> {
        // The link names this very binary even when the file has been replaced meanwhile.
        let program = "/proc/self/exe";
        let failed = |error| TargetError::Start { program: program.into(), error };
        let mut child = Command::new(program)
            .arg(AGENT_ARGUMENT)
            .arg(&self.undo)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // A terminal's Ctrl-C is for the coordinator, which then tells the agent.
            .process_group(0)
            .spawn()
            .map_err(failed)?;
        let (Some(to), Some(from)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(failed(std::io::Error::other("its pipes are missing")));
        };
        match Client::greet(to.into(), from.into(), self.stop.clone()) {
            Ok(client) => Ok((child, client)),
            Err(error) => {
                end(&mut child);
                Err(error.into())
            }
        }
    }

    /// Ends what is left of a dead agent: its trial's processes by their token and what they left, its knobs by the undo
    /// journal.
    fn sweep(&self) -> Result<(), TargetError> {
        machine::kill_strays(TOKEN_VARIABLE, &self.token);
        machine::remove_leftovers();
        let left = |why: String| Err(TargetError::CleanUp(why));
        match machine::recover(&self.undo) {
            Ok(recovery) if recovery.failed.is_empty() => Ok(()),
            Ok(recovery) => {
                let failed: Vec<String> = recovery.failed.iter().map(ToString::to_string).collect();
                left(format!("could not put back {}", failed.join("; ")))
            }
            Err(error) => left(error.to_string()),
        }
    }
}

impl Target for Local {
    fn agent(&mut self, _variant: &Variant) -> Result<&mut Client, TargetError> {
        let open = match self.open.take() {
            Some(open) => open,
            None => self.start()?,
        };
        Ok(&mut self.open.insert(open).1)
    }

    fn abandon(&mut self) -> Result<(), TargetError> {
        if let Some((mut child, client)) = self.open.take() {
            drop(client);
            end(&mut child);
        }
        self.sweep()
    }

    fn close(&mut self) -> Result<(), TargetError> {
        let Some((mut child, client)) = self.open.take() else {
            return Ok(());
        };
        client.shutdown();
        let told_at = Instant::now();
        while told_at.elapsed() < FAREWELL {
            match child.try_wait() {
                Ok(Some(status)) if status.success() => return Ok(()),
                Ok(Some(_)) | Err(_) => return self.sweep(),
                Ok(None) => std::thread::sleep(Duration::from_millis(2)),
            }
        }
        end(&mut child);
        self.sweep()
    }
}

impl Drop for Local {
    fn drop(&mut self) {
        // Nobody is left to hear of a failure; the next command tries again.
        let _ = self.close();
    }
}

fn end(child: &mut Child) {
    // Both fail only when it is gone already.
    let _ = child.kill();
    let _ = child.wait();
}
