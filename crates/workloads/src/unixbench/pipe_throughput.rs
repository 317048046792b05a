//! pipe-throughput: how fast a process writes to a pipe and reads it back.

use super::{Needs, Special, description, measure};
use crate::counting::Task;
use crate::{Failure, Trial, Workload};
use experiment::{Description, Parameter, Params};
use rustix::io::{ioctl_fionread, read, write};
use rustix::pipe::fcntl_getpipe_size;
use std::io::{PipeReader, PipeWriter};

const NEEDS: Needs = Needs { processes: 1, files: 8 };

/// The workload.
#[derive(Debug, Clone, Copy)]
pub struct PipeThroughput;

impl Workload for PipeThroughput {
    fn describe(&self) -> Description {
        description(Special {
            name: "pipe-throughput",
            summary: "rate at which a process writes to a pipe and reads it back",
            about: "A loop writes `datasize` bytes to a pipe and reads them back. One process does both, so nothing \
                    ever sleeps and no context is switched. At the end the pipe must be empty.",
            source: "`pipe`",
            parameters: vec![Parameter::integer(
                "datasize",
                512,
                1,
                65536,
                "bytes of a write; what a pipe holds is the limit",
            )],
            runtime_s: 2.0,
            originals: &[],
            requirement: "as many processes as the point says",
        })
    }

    fn check(&self, _params: &Params, trial: &Trial) -> Result<(), Failure> {
        NEEDS.check(trial)
    }

    fn run(&self, params: &Params, trial: &mut Trial) -> Result<(), Failure> {
        self.describe().check_point(trial.point())?;
        let bytes = params.count("datasize")? as usize;
        measure(params, trial, NEEDS, |task| {
            let (reader, writer) = std::io::pipe()
                .map_err(|error| Failure::Refused(format!("a pipe could not be made: {error}")))?;
            holds(&writer, bytes)?;
            write_and_read(task, &reader, &writer, bytes)
        })
    }
}

/// Whether a pipe holds so many bytes: a write of more would wait for ever, as nobody else reads.
fn holds(pipe: &PipeWriter, bytes: usize) -> Result<(), Failure> {
    match fcntl_getpipe_size(pipe) {
        Ok(size) if size < bytes => Err(Failure::Refused(format!(
            "a pipe of this user holds {size} bytes, less than datasize={bytes}; lower `datasize`, or raise the sysctl \
             fs.pipe-user-pages-soft"
        ))),
        Ok(_) => Ok(()),
        Err(error) => Err(Failure::Refused(format!("the size of a pipe is not known: {error}"))),
    }
}

fn write_and_read(
    task: &Task,
    reader: &PipeReader,
    writer: &PipeWriter,
    bytes: usize,
) -> Result<(), Failure> {
    let mut buffer = vec![0; bytes];
    task.repeat(1, || {
        if write(writer, &buffer) != Ok(bytes) || read(reader, &mut buffer) != Ok(bytes) {
            return Err(partial(bytes));
        }
        Ok(())
    })?;
    match ioctl_fionread(reader) {
        Ok(0) => Ok(()),
        left => Err(Failure::Invariant(format!("the pipe is not empty at the end: {left:?}"))),
    }
}

#[cold]
fn partial(bytes: usize) -> Failure {
    Failure::Invariant(format!("a pipe did not take or give {bytes} bytes at once"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alone::{alone, leaving_nothing};
    use crate::counting::patiently;
    use crate::unixbench::tests::looping;
    use std::io::Write;

    #[test]
    fn a_pipe_that_is_too_small_is_told() {
        let (_reader, writer) = std::io::pipe().unwrap();
        let size = rustix::pipe::fcntl_setpipe_size(&writer, 4096).unwrap();
        holds(&writer, size).unwrap();
        let error = holds(&writer, size + 1).unwrap_err().to_string();
        assert!(error.contains("lower `datasize`"), "{error}");
    }

    #[test]
    fn a_byte_too_many_is_found() {
        alone("unixbench::pipe_throughput::tests::a_byte_too_many_is_found", || {
            let with_one_more = |task: &Task| {
                let (reader, mut writer) = std::io::pipe().unwrap();
                writer.write_all(&[1]).unwrap();
                write_and_read(task, &reader, &writer, 512)
            };
            let error = patiently(|runtime| leaving_nothing(|| looping(runtime).run(with_one_more)))
                .unwrap_err()
                .to_string();
            assert!(error.contains("not empty at the end: Ok(1)"), "{error}");
        });
    }
}
