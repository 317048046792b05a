//! Packages of another suite of the distribution, such as the next release or backports: downloaded by name, without a
//! trace in the machine's own lists.

use crate::runner::{Runner, output};
use anyhow::{Context as _, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A suite, with lists of its own.
pub(crate) struct Suite {
    /// Apt's configuration, which names the lists.
    configuration: PathBuf,
}

impl Suite {
    /// Brings the lists of a suite into `folder`. The archive is the one that the machine already uses.
    pub(crate) fn open(name: &str, folder: &Path, runner: &Runner) -> anyhow::Result<Suite> {
        let folder = std::path::absolute(folder)?;
        for part in ["lists/partial", "cache/archives/partial", "none"] {
            fs::create_dir_all(folder.join(part)).with_context(|| folder.display().to_string())?;
        }
        let in_folder = |part: &str| folder.join(part).display().to_string();
        let settings = [
            ("Dir::Etc::SourceList", in_folder("sources.list")),
            ("Dir::Etc::SourceParts", in_folder("none")),
            ("Dir::Etc::Preferences", "/dev/null".into()),
            ("Dir::Etc::PreferencesParts", in_folder("none")),
            ("Dir::State::Lists", in_folder("lists")),
            ("Dir::Cache", in_folder("cache")),
            // What is installed here must not decide which version is taken.
            ("Dir::State::Status", "/dev/null".into()),
            ("Acquire::Languages", "none".into()),
            // The folder need not be open to apt's own user.
            ("APT::Sandbox::User", String::new()),
        ];
        let settings: Vec<String> =
            settings.iter().map(|(name, value)| format!("{name} \"{value}\";\n")).collect();
        let configuration = folder.join("apt.conf");
        for (file, text) in
            [(&configuration, settings.concat()), (&folder.join("sources.list"), source_line(name)?)]
        {
            fs::write(file, text).with_context(|| file.display().to_string())?;
        }
        let suite = Suite { configuration };
        runner.run(suite.apt("apt-get").args(["update", "-qq"]))?;
        Ok(suite)
    }

    fn apt(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env("APT_CONFIG", &self.configuration);
        command
    }

    /// The packages that one of these names comes to, itself included, as far as their names begin with `beginnings`:
    /// a name without a version only depends on the package that has one.
    pub(crate) fn resolve(&self, name: &str, beginnings: &[&str]) -> anyhow::Result<Vec<String>> {
        let mut look = self.apt("apt-cache");
        look.args(["depends", "--recurse", "--no-pre-depends", "--no-recommends", "--no-suggests"]);
        look.args(["--no-conflicts", "--no-breaks", "--no-replaces", "--no-enhances", name]);
        let said = output(&mut look)?;
        let mut names: Vec<String> = said
            .lines()
            // Each package that was met stands at the beginning of a line of its own.
            .filter(|line| beginnings.iter().any(|beginning| line.starts_with(beginning)))
            .map(|line| line.trim_end().to_string())
            .collect();
        names.sort();
        names.dedup();
        ensure!(
            !names.is_empty(),
            "the suite has no package {name} that brings one of {}",
            beginnings.join(", ")
        );
        Ok(names)
    }

    /// Downloads packages into `folder`; those that are there already are kept. Gives their files, in the same order.
    pub(crate) fn download(
        &self,
        names: &[String],
        folder: &Path,
        runner: &Runner,
    ) -> anyhow::Result<Vec<PathBuf>> {
        fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
        // Lines of address, name of the file, bytes, sum.
        let said = output(self.apt("apt-get").args(["download", "--print-uris"]).args(names))?;
        let found: Vec<&str> = said.lines().filter_map(|line| line.split_whitespace().nth(1)).collect();
        let file_of = |name: &String| {
            let file = found.iter().find(|file| file.starts_with(&format!("{name}_")));
            file.map(|file| folder.join(file))
                .with_context(|| format!("apt-get does not say where it puts {name}"))
        };
        let files: anyhow::Result<Vec<PathBuf>> = names.iter().map(file_of).collect();
        runner.run(self.apt("apt-get").args(["download", "-q"]).args(names).current_dir(folder))?;
        files
    }
}

/// The line of a sources list for a suite, in the archive from which this machine's own release comes.
fn source_line(suite: &str) -> anyhow::Result<String> {
    let release = fs::read_to_string("/etc/os-release").context("/etc/os-release")?;
    let codename = release.lines().find_map(|line| line.strip_prefix("VERSION_CODENAME="));
    let codename =
        codename.context("/etc/os-release has no VERSION_CODENAME; --suite needs a Debian or Ubuntu")?;
    let mut look = Command::new("apt-get");
    look.args(["indextargets", "--format", "$(RELEASE) $(COMPONENT) $(REPO_URI)", "Created-By: Packages"]);
    let targets = output(&mut look)?;
    let main = format!("{} main ", codename.trim_matches('"'));
    let archive = targets.lines().find_map(|line| line.strip_prefix(&main));
    let archive = archive.with_context(|| format!("this machine's lists have no {codename} main"))?;
    let keys = "/usr/share/keyrings/debian-archive-keyring.gpg";
    let signed_by = if Path::new(keys).exists() { format!("[signed-by={keys}] ") } else { String::new() };
    Ok(format!("deb {signed_by}{archive} {suite} main\n"))
}
