//! exec-loop: how fast a process replaces its program.

use super::{Needs, Special, description, measure};
use crate::originals::{absent, die_with_parent, failed_command, on_path};
use crate::{Failure, Trial, Workload};
use experiment::{Description, Parameter, Params};
use std::path::PathBuf;
use std::process::{Command, Stdio};

const NEEDS: Needs = Needs { processes: 2, files: 16 };

/// The workload.
#[derive(Debug, Clone, Copy)]
pub struct ExecLoop;

impl Workload for ExecLoop {
    fn describe(&self) -> Description {
        description(Special {
            name: "exec-loop",
            summary: "rate at which a process replaces its program",
            about: "A copy starts a process that replaces its program `chain` times and ends, again and again: \
                    /usr/bin/env with a list of itself as its command, so that each env executes the next, up to \
                    /usr/bin/true. Every link is one execve, the load of a small program with its C library, and its \
                    start. The fork and the end of the process are a part of 1/`chain` of it. The process must leave \
                    with status 0, which it does only when every link found the next.",
            source: "`execl`, whose program executes itself with a count among its arguments until whole seconds have \
                     passed. env is another program than UnixBench's, so rates are not those that UnixBench prints",
            parameters: vec![Parameter::integer(
                "chain",
                20,
                1,
                1000,
                "execve calls of a process before it ends",
            )],
            runtime_s: 5.0,
            originals: &[],
            requirement: "env and true on PATH, and twice as many processes as the point says",
        })
    }

    fn check(&self, params: &Params, trial: &Trial) -> Result<(), Failure> {
        NEEDS.check(trial)?;
        Chain::new(params).map(drop)
    }

    fn run(&self, params: &Params, trial: &mut Trial) -> Result<(), Failure> {
        self.describe().check_point(trial.point())?;
        let chain = Chain::new(params)?;
        measure(params, trial, NEEDS, |task| task.repeat(chain.links, || chain.execute()))
    }
}

/// Programs that execute each other.
struct Chain {
    links: u64,
    link: PathBuf,
    last: PathBuf,
}

impl Chain {
    fn new(params: &Params) -> Result<Chain, Failure> {
        let find = |name: &str| {
            on_path(name).ok_or_else(|| {
                absent(name, &format!("{name} is not on PATH; `apt-get install coreutils` brings it"))
            })
        };
        Ok(Chain { links: params.count("chain")?, link: find("env")?, last: find("true")? })
    }

    fn execute(&self) -> Result<(), Failure> {
        let links = self.links as usize;
        let mut programs = std::iter::repeat_n(&self.link, links - 1).chain([&self.last]);
        let Some(first) = programs.next() else { return Ok(()) };
        let mut command = Command::new(first);
        command.args(programs).stdin(Stdio::null()).stdout(Stdio::null());
        die_with_parent(&mut command);
        let line = || format!("a chain of {links} programs");
        let output = command
            .output()
            .map_err(|error| Failure::Refused(format!("{} could not be started: {error}", line())))?;
        match failed_command(&line(), output.status, "", &String::from_utf8_lossy(&output.stderr)) {
            None => Ok(()),
            Some(failure) => Err(Failure::Invariant(failure.to_string())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alone::{alone, leaving_nothing};
    use crate::counting::UNTIL_IT_FAILS;
    use crate::unixbench::tests::looping;

    #[test]
    fn a_chain_that_breaks_is_found() {
        alone("unixbench::exec_loop::tests::a_chain_that_breaks_is_found", || {
            let chain = |last: &str| Chain { links: 4, link: on_path("env").unwrap(), last: last.into() };
            let run = |last| looping(UNTIL_IT_FAILS).run(|task| task.repeat(4, || chain(last).execute()));
            let error = leaving_nothing(|| run("false")).unwrap_err().to_string();
            assert!(error.contains("left with status 1"), "{error}");
            let error = leaving_nothing(|| run("/no/such/program")).unwrap_err().to_string();
            assert!(error.contains("left with status 127; it said: "), "{error}");
        });
    }
}
