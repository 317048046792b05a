//! One kernel, from its options to the directory that `kernel=` takes.

use super::options::{Options, Variant};
use crate::runner::Runner;
use anyhow::{Context as _, bail, ensure};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// About how many lines a build of the features kernel prints: an estimate for the progress bar, no more.
const LINES: u64 = 1500;
/// Where no terminal shows the bar, how often a line tells how far it is.
const REPORT: Duration = Duration::from_secs(60);
/// How much of a log an error shows.
const TAIL_LINES: usize = 25;

pub(super) struct Build<'a> {
    pub(super) variant: Variant,
    /// The tree of sources.
    pub(super) source: &'a Path,
    /// Where the objects go.
    pub(super) work: &'a Path,
    /// Where the kernel goes.
    pub(super) to: &'a Path,
    pub(super) jobs: usize,
    /// Whether options that this source does not know may be left out.
    pub(super) partial: bool,
    pub(super) runner: &'a Runner,
}

impl Build<'_> {
    /// Builds the kernel and gives its directory.
    pub(super) fn run(&self) -> anyhow::Result<PathBuf> {
        let name = self.variant.name();
        let (objects, to) = (self.work.join(name), self.to.join(name));
        self.configure(&objects)?;
        let mut make = self.make(&objects);
        make.arg(format!("-j{}", self.jobs)).args(["bzImage", "modules"]);
        self.runner.say(&make);
        if !self.runner.dry {
            watch(&mut make, &self.work.join(format!("{name}.log")), name)?;
        }
        eprintln!("+ install bzImage, config and modules in {}", to.display());
        if !self.runner.dry {
            install(&objects, &to)?;
        }
        Ok(to)
    }

    fn make(&self, objects: &Path) -> Command {
        let mut make = Command::new("make");
        make.arg("-C").arg(self.source).arg(format!("O={}", objects.display()));
        // The same source gives the same bytes, whoever builds it.
        make.args(["KBUILD_BUILD_USER=kduel", "KBUILD_BUILD_HOST=kduel", "KBUILD_BUILD_VERSION=1"]);
        make.arg("KBUILD_BUILD_TIMESTAMP=2026-01-01");
        make
    }

    fn configure(&self, objects: &Path) -> anyhow::Result<()> {
        let wanted = self.variant.options();
        let list = self.work.join(format!("{}.options", self.variant.name()));
        let mut make = self.make(objects);
        make.arg(format!("KCONFIG_ALLCONFIG={}", list.display())).args(["-s", "allnoconfig"]);
        if !self.runner.dry {
            fs::create_dir_all(objects).with_context(|| objects.display().to_string())?;
            fs::write(&list, wanted.text()).with_context(|| list.display().to_string())?;
            make.stdout(Stdio::null());
        }
        self.runner.run(&mut make)?;
        if self.runner.dry {
            return Ok(());
        }
        let config = objects.join(".config");
        let config = fs::read_to_string(&config).with_context(|| config.display().to_string())?;
        let missed = wanted.missed_by(&Options::parse(&config)).join("; ");
        ensure!(
            missed.is_empty() || self.partial,
            "this source does not take all options: {missed}. They need a newer kernel, or another option; --partial \
             builds without them"
        );
        if !missed.is_empty() {
            eprintln!("without: {missed}");
        }
        Ok(())
    }
}

/// Runs make with its output in a log and a bar for whoever waits.
fn watch(make: &mut Command, log: &Path, name: &str) -> anyhow::Result<()> {
    let started = Instant::now();
    let mut file = File::create(log).with_context(|| log.display().to_string())?;
    let mut child = make
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(file.try_clone()?)
        .spawn()
        .context("make does not start")?;
    let output = child.stdout.take().context("make has no output")?;
    let is_watched = std::io::stderr().is_terminal();
    let target = if is_watched { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
    let style = ProgressStyle::with_template("{prefix} {wide_bar} {pos}/~{len}  {elapsed}  {msg}")?;
    let bar =
        ProgressBar::with_draw_target(Some(LINES), target).with_style(style).with_prefix(name.to_string());
    let mut reported = started;
    for line in BufReader::new(output).split(b'\n') {
        let line = line?;
        file.write_all(&line)?;
        file.write_all(b"\n")?;
        bar.inc(1);
        bar.set_message(String::from_utf8_lossy(&line).trim().chars().take(60).collect::<String>());
        if !is_watched && reported.elapsed() >= REPORT {
            reported = Instant::now();
            eprintln!("{name}: {} of about {LINES} lines, {}", bar.position(), in_words(started.elapsed()));
        }
    }
    let status = child.wait()?;
    let lines = bar.position();
    bar.finish_and_clear();
    if !status.success() {
        let text = String::from_utf8_lossy(&fs::read(log)?).into_owned();
        let lines: Vec<&str> = text.lines().collect();
        let tail = lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n");
        bail!("make: {status}. The end of {}:\n{tail}", log.display());
    }
    eprintln!("{name}: built in {}, {lines} lines", in_words(started.elapsed()));
    Ok(())
}

/// Copies what `kernel=` takes.
fn install(objects: &Path, to: &Path) -> anyhow::Result<()> {
    let modules = to.join("modules");
    if modules.exists() {
        fs::remove_dir_all(&modules).with_context(|| modules.display().to_string())?;
    }
    fs::create_dir_all(&modules).with_context(|| modules.display().to_string())?;
    let copy = |from: &Path, to: &Path| {
        fs::copy(from, to).with_context(|| format!("{} to {}", from.display(), to.display()))
    };
    copy(&objects.join("arch/x86/boot/bzImage"), &to.join("bzImage"))?;
    copy(&objects.join(".config"), &to.join("config"))?;
    copy(&objects.join("modules.builtin"), &modules.join("modules.builtin"))?;
    let order = fs::read_to_string(objects.join("modules.order")).context("modules.order")?;
    for line in order.lines() {
        let module = objects.join(line).with_extension("ko");
        copy(&module, &modules.join(module.file_name().context("a module without a name")?))?;
    }
    Ok(())
}

fn in_words(time: Duration) -> String {
    let seconds = time.as_secs();
    if seconds < 120 { format!("{seconds} s") } else { format!("{} min {} s", seconds / 60, seconds % 60) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;

    /// Stands in for the makefile of a kernel: it takes every option but those that `WITHOUT` names, and has one module.
    const MAKEFILE: &str = "\
WITHOUT := CONFIG_NONE
allnoconfig:
\t@grep -v '$(WITHOUT)' $(KCONFIG_ALLCONFIG) > $(O)/.config
bzImage:
\t@mkdir -p $(O)/arch/x86/boot
\t@echo '  BUILD   bzImage'
\t@cp image $(O)/arch/x86/boot/bzImage
modules:
\t@echo '  CC [M]  kernel/one.o'
\t@mkdir -p $(O)/kernel
\t@cp module $(O)/kernel/one.ko
\t@echo kernel/one.o > $(O)/modules.order
\t@echo kernel/two.ko > $(O)/modules.builtin
";

    /// Builds from a source with this makefile.
    fn build(makefile: &str, partial: bool) -> (TempDir, anyhow::Result<PathBuf>) {
        let top = TempDir::new().unwrap();
        let source = top.path().join("source");
        fs::create_dir(&source).unwrap();
        fs::write(source.join("Makefile"), makefile).unwrap();
        fs::write(source.join("image"), "an image").unwrap();
        fs::write(source.join("module"), "a module").unwrap();
        let (work, to) = (top.path().join("work"), top.path().join("to"));
        let (variant, runner) = (Variant::NoSlice, &Runner { dry: false });
        let build = Build { variant, source: &source, work: &work, to: &to, jobs: 1, partial, runner };
        let built = build.run();
        (top, built)
    }

    fn has_make() -> bool {
        let there = Command::new("make").arg("--version").stdout(Stdio::null()).status().is_ok();
        if !there {
            println!("skipped: make is not installed");
        }
        there
    }

    #[test]
    fn what_was_built_is_put_where_a_kernel_is_looked_for() {
        if !has_make() {
            return;
        }
        let (top, built) = build(MAKEFILE, false);
        let to = built.unwrap();
        let text = |inside: &str| fs::read_to_string(to.join(inside)).unwrap();
        assert_eq!((text("bzImage"), text("modules/one.ko")), ("an image".into(), "a module".into()));
        assert_eq!(text("modules/modules.builtin"), "kernel/two.ko\n");
        assert!(text("config").contains("# CONFIG_RSEQ_SLICE_EXTENSION is not set"));
        let log = fs::read_to_string(top.path().join("work/no-slice.log")).unwrap();
        assert!(log.contains("CC [M]  kernel/one.o"), "{log}");
    }

    #[test]
    fn options_that_the_source_does_not_take_are_named_before_it_is_built() {
        if !has_make() {
            return;
        }
        let makefile = MAKEFILE.replace("CONFIG_NONE", "SCHED_PROXY_EXEC");
        let (top, built) = build(&makefile, false);
        let said = built.unwrap_err().to_string();
        assert!(said.contains("CONFIG_SCHED_PROXY_EXEC is n, not y") && said.contains("--partial"), "{said}");
        assert!(!top.path().join("work/no-slice/arch").exists(), "nothing was built");
        build(&makefile, true).1.unwrap();
    }

    #[test]
    fn a_build_that_fails_shows_the_end_of_its_log() {
        if !has_make() {
            return;
        }
        let makefile =
            MAKEFILE.replace("\t@cp image", "\t@echo 'main.c:1: error: no such thing' >&2; false #");
        let (_top, built) = build(&makefile, false);
        let said = built.unwrap_err().to_string();
        assert!(said.contains("no-slice.log") && said.contains("error: no such thing"), "{said}");
    }
}
