//! An sshd of a test's own on a port of this machine, with keys of its own, and a home for whoever logs in.

// Each test binary uses its own part of this.
#![allow(dead_code, clippy::expect_used)]

use rustix::process::{Pid, Signal, geteuid, kill_process, kill_process_group};
use std::fs;
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The name under which the machine stands in the configuration of ssh.
pub const NAME: &str = "box";

/// The files of /proc that tell which boot of which kernel this is, which a machine that seems to reboot has to forge.
const FORGED: [(&str, &str); 4] = [
    ("boot_id", "/proc/sys/kernel/random/boot_id"),
    ("release", "/proc/sys/kernel/osrelease"),
    ("build", "/proc/sys/kernel/version"),
    ("command_line", "/proc/cmdline"),
];

/// The programs that reboot a machine. Those of a test stand before the real ones, which nothing may ever reach.
const PROGRAMS: [&str; 6] = ["kexec", "reboot", "systemctl", "grub-reboot", "grub-editenv", "bootctl"];

/// A `cat` for machines whose kernel, unlike this one's, may be left by kexec.
const CAT: &str = "case \"$1\" in (*/kexec_load_disabled) echo 0;; (*) exec /bin/cat \"$@\";; esac\n";

pub struct Sshd {
    directory: TempDir,
    /// Where it listens on 127.0.0.1.
    pub port: u16,
    server: Child,
}

impl Sshd {
    /// A machine that is this one; why there can be none otherwise.
    pub fn start() -> Result<Sshd, String> {
        Sshd::start_as(false)
    }

    /// A machine that seems to reboot: it has a `kexec` and a `reboot` that change what it says of its boot and end its sshd,
    /// which comes back after a second.
    pub fn start_rebootable() -> Result<Sshd, String> {
        match geteuid().is_root() {
            true => Sshd::start_as(true),
            false => Err("forging what /proc says of the boot needs root".into()),
        }
    }

    fn start_as(rebootable: bool) -> Result<Sshd, String> {
        let sshd = find_sshd()?;
        let directory = TempDir::new().expect("a temporary directory");
        let port = free_port();
        write_keys(directory.path());
        write_configurations(directory.path(), port);
        write_programs(directory.path());
        let server = serve(sshd, directory.path(), rebootable);
        let machine = Sshd { directory, port, server };
        machine.wait_until_it_listens()?;
        machine.check_that_programs_are_ours()?;
        Ok(machine)
    }

    /// What kduel has to give ssh so that it finds the machine.
    pub fn arguments(&self) -> String {
        format!("-F {}", self.path("config").display())
    }

    /// A file of the machine's own: keys, configurations, what it forges.
    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// The home of whoever logs in.
    pub fn there(&self) -> PathBuf {
        self.path("there")
    }

    /// Where kduel keeps its copies there.
    pub fn cache(&self) -> PathBuf {
        self.there().join(".cache/kduel")
    }

    /// Changes something in the client's configuration.
    pub fn reconfigure(&self, from: &str, to: &str) {
        let text = fs::read_to_string(self.path("config")).expect("the configuration");
        assert!(text.contains(from), "{text}");
        fs::write(self.path("config"), text.replace(from, to)).expect("the configuration");
    }

    /// Makes the client believe that the machine's key is `key`.
    pub fn know_as(&self, key: &str) {
        know_as(self.directory.path(), key);
    }

    /// What the programs that reboot were asked to do.
    pub fn log(&self) -> String {
        fs::read_to_string(self.there().join("log")).unwrap_or_default()
    }

    /// Cuts every connection without a word.
    pub fn cut(&self) {
        self.signal_sessions(Signal::KILL);
    }

    /// Lets every connection hang, as those to a machine whose cable was pulled out do.
    pub fn freeze(&self) {
        self.signal_sessions(Signal::STOP);
    }

    /// Sends a signal to the processes that serve a connection, and to those before them that keep root's rights.
    fn signal_sessions(&self, signal: Signal) {
        let listener = fs::read_to_string(self.path("sshd.pid")).unwrap_or_default();
        let monitors = children(listener.trim());
        let behind: Vec<String> = monitors.iter().flat_map(|pid| children(pid)).collect();
        for pid in monitors.iter().chain(&behind) {
            let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
            if let Some(pid) = pid.parse().ok().and_then(Pid::from_raw).filter(|_| name.starts_with("sshd")) {
                // It may have ended by itself.
                let _ = kill_process(pid, signal);
            }
        }
    }

    fn wait_until_it_listens(&self) -> Result<(), String> {
        let began = Instant::now();
        while TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            if began.elapsed() > Duration::from_secs(20) {
                return Err("sshd does not start here, or /proc cannot be forged".into());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    fn check_that_programs_are_ours(&self) -> Result<(), String> {
        let found = Command::new("ssh")
            .args(["-F", &self.path("config").display().to_string(), "-o", "BatchMode=yes", NAME])
            .arg(PROGRAMS.map(|program| format!("command -v {program};")).concat())
            .output()
            .expect("ssh starts");
        let (said, complaint) =
            (String::from_utf8_lossy(&found.stdout), String::from_utf8_lossy(&found.stderr));
        let ours = self.there().join("bin").display().to_string();
        match said.lines().count() == PROGRAMS.len() && said.lines().all(|line| line.starts_with(&ours)) {
            true => Ok(()),
            false => Err(format!("a login does not find the programs of the test: {said}{complaint}")),
        }
    }
}

impl Drop for Sshd {
    fn drop(&mut self) {
        self.cut();
        if let Some(group) = Pid::from_raw(self.server.id() as i32) {
            let _ = kill_process_group(group, Signal::KILL);
        }
        let _ = self.server.wait();
    }
}

fn find_sshd() -> Result<&'static str, String> {
    let sshd = ["/usr/sbin/sshd", "/usr/bin/sshd"].into_iter().find(|path| Path::new(path).exists());
    let sshd = sshd.ok_or("sshd is not installed (Debian: openssh-server)")?;
    if Command::new("ssh").arg("-V").output().is_err() {
        return Err("ssh is not installed (Debian: openssh-client)".into());
    }
    if geteuid().is_root() {
        // Where sshd locks up those who have not yet logged in, when root runs it.
        fs::create_dir_all("/run/sshd").map_err(|error| format!("/run/sshd cannot be made: {error}"))?;
    }
    Ok(sshd)
}

fn write_keys(directory: &Path) {
    for key in ["host", "user", "stranger"] {
        let made = Command::new("ssh-keygen")
            .args(["-q", "-t", "ed25519", "-N", "", "-f"])
            .arg(directory.join(key))
            .status();
        assert!(made.expect("ssh-keygen starts").success());
    }
    know_as(directory, "host");
}

fn know_as(directory: &Path, key: &str) {
    let public = fs::read_to_string(directory.join(format!("{key}.pub"))).expect("a public key");
    fs::write(directory.join("known_hosts"), format!("{NAME} {public}")).expect("known hosts");
}

fn write_configurations(directory: &Path, port: u16) {
    let user = Command::new("id").arg("-un").output().expect("id runs");
    let user = String::from_utf8_lossy(&user.stdout).trim().to_string();
    let directory = directory.display();
    let server = format!(
        "Port {port}\nListenAddress 127.0.0.1\nHostKey {directory}/host\nPidFile {directory}/sshd.pid\nAuthorizedKeysFile \
         {directory}/user.pub\nStrictModes no\nUsePAM no\nPasswordAuthentication no\nKbdInteractiveAuthentication no\n\
         PermitRootLogin yes\nUseDNS no\nMaxStartups 100\nSetEnv HOME={directory}/there KDUEL_HOME={directory}/there \
         XDG_CACHE_HOME= PATH={directory}/there/bin:/usr/local/bin:/usr/bin:/bin\n"
    );
    let client = format!(
        "Host {NAME}\n  HostName 127.0.0.1\n  Port {port}\n  User {user}\n  HostKeyAlias {NAME}\n  IdentityFile \
         {directory}/user\n  IdentitiesOnly yes\n  UserKnownHostsFile {directory}/known_hosts\n  GlobalKnownHostsFile \
         /dev/null\n"
    );
    fs::write(format!("{directory}/sshd_config"), server).expect("a file");
    fs::write(format!("{directory}/config"), client).expect("a file");
}

/// The programs that reboot the machine, and what it says of its boot before they do.
fn write_programs(directory: &Path) {
    for (name, real) in FORGED {
        let text = fs::read(real).expect("/proc");
        fs::write(directory.join(name), &text).expect("a file");
        fs::write(directory.join(format!("first_{name}")), &text).expect("a file");
    }
    let there = directory.join("there");
    fs::create_dir_all(there.join("bin")).expect("a directory");
    let (forged, home) = (directory.display(), there.display());
    let go_down = format!(
        "pid=$(cat {forged}/sshd.pid); sessions=$(cat /proc/$pid/task/$pid/children)\n\
         kill -9 $pid $sessions\n\
         cat /proc/sys/kernel/random/uuid > {forged}/boot_id\n"
    );
    // It lies where a file of that name says so: then the kernel that comes up is the one that was there before.
    let kexec = format!(
        "if [ \"$1\" = -e ]; then\n\
           if [ ! -f {home}/lies ]; then\n\
             for file in release build command_line; do cat {home}/next_$file > {forged}/$file; done\n\
           fi\n\
           {go_down}\
           exit 0\n\
         fi\n\
         while [ $# -gt 0 ]; do\n\
           case \"$1\" in\n\
             --command-line=*) echo \"${{1#--command-line=}}\" > {home}/next_command_line;;\n\
             -*) ;;\n\
             *) banner=$(tr '\\000' '\\n' < \"$1\" | grep -a -m 1 '(me@box)')\n\
                echo \"${{banner%% *}}\" > {home}/next_release; echo \"#${{banner#*#}}\" > {home}/next_build;;\n\
           esac\n\
           shift\n\
         done\n"
    );
    let first = format!(
        "for file in release build command_line; do cat {forged}/first_$file > {forged}/$file; done\n"
    );
    for (name, text) in [
        ("kexec", kexec),
        ("reboot", first + &go_down),
        ("systemctl", "exec \"$1\" -e\n".into()),
        ("grub-reboot", String::new()),
        ("grub-editenv", String::new()),
        ("bootctl", "exit 1\n".into()),
    ] {
        write_program(&there, name, &format!("echo \"{name} $*\" >> {home}/log\n{text}"));
    }
    write_program(&there, "cat", CAT);
}

fn write_program(there: &Path, name: &str, text: &str) {
    let path = there.join("bin").join(name);
    fs::write(&path, format!("#!/bin/sh\n{text}")).expect("a program");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("a program");
}

fn serve(sshd: &str, directory: &Path, rebootable: bool) -> Child {
    let serve = format!("{sshd} -D -e -f {}/sshd_config", directory.display());
    let mut command = Command::new(if rebootable { "unshare" } else { "sh" });
    if rebootable {
        let forge =
            FORGED.map(|(name, real)| format!("mount --bind {}/{name} {real} && ", directory.display()));
        command.args(["--mount", "--propagation", "private", "sh", "-c"]);
        command.arg(format!("{} while :; do {serve}; sleep 1; done", forge.concat()));
    } else {
        command.args(["-c", &format!("exec {serve}")]);
    }
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.process_group(0).spawn().expect("a shell starts")
}

/// The children of a process.
fn children(pid: &str) -> Vec<String> {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    text.split_whitespace().map(str::to_string).collect()
}

/// A port that nothing listened on just now.
pub fn free_port() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    listener.local_addr().expect("an address").port()
}

/// The start of a kernel image, as far as a boot loader looks at it.
pub fn image(release: &str, build: &str) -> Vec<u8> {
    let banner = format!("{release} (me@box) {build}");
    let mut image = vec![0; 4096];
    image[514..518].copy_from_slice(b"HdrS");
    image[526..528].copy_from_slice(&1024_u16.to_le_bytes());
    image[1536..1536 + banner.len()].copy_from_slice(banner.as_bytes());
    image
}
