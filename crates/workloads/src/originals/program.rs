use super::running::Running;
use crate::Failure;
use crate::processes::ending;
use machine::{Root, is_guest, on_path};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::process::{Signal, set_parent_process_death_signal};
use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

/// An installed program.
#[derive(Debug)]
pub struct Program {
    path: PathBuf,
    environment: Vec<(String, String)>,
}

impl Program {
    /// The program `name` on PATH.
    ///
    /// # Errors
    /// When it is not there; the error names the Debian package that brings it.
    pub fn find(name: &str, package: Option<&str>) -> Result<Program, Failure> {
        on_path(name).map(|path| Program { path, environment: Vec::new() }).ok_or_else(|| {
            let advice = match package {
                Some(package) => format!("{name} is not installed; `apt-get install {package}` brings it"),
                None => {
                    format!(
                        "{name} is not on PATH; Debian 12 has no package of it, so build it from its source"
                    )
                }
            };
            absent(name, &advice)
        })
    }

    /// The program with a variable in its environment.
    pub fn with(mut self, variable: &str, value: &str) -> Program {
        self.environment.push((variable.into(), value.into()));
        self
    }

    /// Runs it to its end and returns what it printed. It is killed when this thread ends.
    ///
    /// # Errors
    /// When it cannot be started or does not leave with status 0; the error quotes what it said.
    pub fn run(&self, arguments: &[&str]) -> Result<String, Failure> {
        self.run_aloud(arguments).map(|printed| printed.stdout)
    }

    /// As [`Program::run`], for programs whose results are not all on the standard output.
    ///
    /// # Errors
    /// As [`Program::run`].
    pub fn run_aloud(&self, arguments: &[&str]) -> Result<Printed, Failure> {
        let line = self.line(arguments);
        let output = self.command(arguments).output().map_err(|error| not_started(&line, &error))?;
        let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        match failed_command(&line, output.status, &stdout, &stderr) {
            None => Ok(Printed { stdout, stderr }),
            Some(failure) => Err(failure),
        }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Starts it in the background, as the leader of a process group of its own.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start(&self, arguments: &[&str]) -> Result<Running, Failure> {
        let line = self.line(arguments);
        let start = || {
            let output = File::from(memfd_create("output", MemfdFlags::CLOEXEC)?);
            let mut command = self.command(arguments);
            command.process_group(0).stdout(output.try_clone()?).stderr(output.try_clone()?);
            Ok((command.spawn()?, output))
        };
        match start() {
            Ok((child, output)) => Ok(Running::new(line, child, output)),
            Err(error) => Err(not_started(&line, &error)),
        }
    }

    /// The command with what all runs of programs have in common.
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.path);
        // Numbers are to be printed in one form.
        command
            .args(arguments)
            .env("LC_ALL", "C")
            .envs(self.environment.iter().cloned())
            .stdin(Stdio::null());
        die_with_parent(&mut command);
        command
    }

    fn line(&self, arguments: &[&str]) -> String {
        format!("{} {}", self.path.display(), arguments.join(" ")).trim_end().into()
    }
}

/// The failure of work that has to start `program`, which is not there: `advice` says so, and what would change that on a
/// machine that can have programs.
pub fn absent(program: &str, advice: &str) -> Failure {
    absent_on(&Root::real(), program, advice)
}

fn absent_on(root: &Root, program: &str, advice: &str) -> Failure {
    Failure::Refused(match is_guest(root) {
        true => format!(
            "{program} is not in the virtual machine, which holds no programs of the host (docs/vm.md); take --target \
             local or ssh:HOST, or work that starts no program"
        ),
        false => advice.into(),
    })
}

/// What a program printed.
#[derive(Debug, Clone)]
pub struct Printed {
    /// On the standard output.
    pub stdout: String,
    /// On the standard error.
    pub stderr: String,
}

fn not_started(line: &str, error: &io::Error) -> Failure {
    Failure::Refused(format!("`{line}` could not be started: {error}"))
}

/// The failure of the command `line`, which ended with `status` and printed this; `None` if the status is 0.
pub fn failed_command(line: &str, status: ExitStatus, stdout: &str, stderr: &str) -> Option<Failure> {
    let how = ending(status)?;
    let said = complaint(stderr).or_else(|| complaint(stdout)).unwrap_or("nothing").into();
    Some(Failure::Command { line: line.into(), how, said, by_signal: status.code().is_none() })
}

/// Has the kernel kill the command's process when the thread that started it ends.
pub fn die_with_parent(command: &mut Command) {
    let parent = rustix::process::getpid();
    // SAFETY: Between fork and exec the closure makes two system calls and neither allocates nor locks.
    unsafe {
        command.pre_exec(move || {
            set_parent_process_death_signal(Some(Signal::KILL))?;
            // The parent may have died before the signal was asked for.
            match rustix::process::getppid() == Some(parent) {
                true => Ok(()),
                false => Err(io::ErrorKind::BrokenPipe.into()),
            }
        });
    }
}

/// The line that says what is wrong: the first with the word error in it, or else the last.
fn complaint(text: &str) -> Option<&str> {
    text.lines().find(|line| line.to_lowercase().contains("error")).or_else(|| last_line(text))
}

/// The last line that is not empty.
pub fn last_line(text: &str) -> Option<&str> {
    text.lines().map(str::trim).rfind(|line| !line.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_installed_in_a_virtual_machine() {
        let tree = tempfile::tempdir().unwrap();
        let root = Root::at(tree.path());
        let said = || absent_on(&root, "perf", "install it").to_string();
        assert_eq!(said(), "install it");
        std::fs::create_dir(tree.path().join("kduel")).unwrap();
        std::fs::write(tree.path().join("kduel/order.json"), "{}").unwrap();
        let said = said();
        assert!(
            said.starts_with("perf is not in the virtual machine") && said.contains("--target"),
            "{said}"
        );
        assert!(!said.contains("install"), "{said}");
    }
}
