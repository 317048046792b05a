//! Kernels of another machine changed by a real kexec. The machine is a virtual one with a network card that only this host
//! reaches; a real reset takes it back to the kernel that QEMU gives it. `cargo xtask test` brings what it takes.

#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "sshd.rs"]
mod sshd;
#[path = "support.rs"]
mod support;

use sshd::free_port;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use support::{Kduel, reasons, stderr};
use tempfile::TempDir;

/// What lets a stock kernel use the card, each after those that it needs.
const MODULES: [&str; 3] = ["failover", "net_failover", "virtio_net"];

/// Process 1 of the machine. The `reboot` of busybox asks it by a signal.
const INIT: &str = r#"#!/bin/busybox sh
/bin/busybox --install -s /bin
mkdir -p /proc /sys /dev /run/sshd /tmp
mount -t proc proc /proc; mount -t sysfs sysfs /sys; mount -t devtmpfs dev /dev
: > /boot/initrd; hostname box
for module in MODULES; do insmod /modules/$(uname -r)/$module.ko; done
ip link set lo up; ip address add 10.0.2.15/24 dev eth0; ip link set eth0 up
trap "/bin/busybox reboot -f" TERM
/usr/sbin/sshd -D -e -f /etc/sshd_config &
while :; do wait; sleep 1; done
"#;

/// The initramfs of the next kernel is all that is there now, the copy of kduel included.
const KEXEC: &str = r#"#!/bin/sh
if [ "$1" = -l ]; then
    cd / && find . -xdev ! -path ./boot/initrd | cpio -o -H newc > /boot/initrd.new 2>/dev/null
    mv /boot/initrd.new /boot/initrd
fi
exec /usr/sbin/kexec "$@"
"#;

/// A stock kernel out of its packages.
struct Stock {
    image: PathBuf,
    /// Where its modules are.
    modules: PathBuf,
    release: String,
}

struct Machine {
    directory: TempDir,
    /// The kernel that it is to change to.
    other: Stock,
    qemu: Child,
}

impl Machine {
    fn start() -> Result<Machine, String> {
        for (program, package) in [
            ("/usr/bin/qemu-system-x86_64", "qemu-system-x86"),
            ("/usr/sbin/sshd", "openssh-server"),
            ("/bin/busybox", "busybox-static"),
            ("/usr/sbin/kexec", "kexec-tools"),
            ("/usr/bin/dpkg-deb", "dpkg"),
            ("/usr/bin/unxz", "xz-utils"),
        ] {
            if !Path::new(program).exists() {
                return Err(format!("{program} is not there (Debian: {package})"));
            }
        }
        let directory = TempDir::new().unwrap();
        let [own, other] = ["trixie", "trixie-backports"].map(|suite| stock(suite, directory.path()));
        let (own, other) = (own?, other?);
        write_root(&directory.path().join("root"), directory.path(), [&own, &other]);
        let port = free_port();
        write_client(directory.path(), port);
        let qemu = boot(directory.path(), &own, port);
        let mut machine = Machine { directory, other, qemu };
        machine.wait_until_it_answers();
        Ok(machine)
    }

    fn wait_until_it_answers(&mut self) {
        let began = Instant::now();
        let arguments = self.arguments();
        let answers = || {
            let mut ssh = Command::new("ssh");
            ssh.args(arguments.split(' ')).args(["-o", "BatchMode=yes", "box", "true"]);
            ssh.stdin(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
        };
        while !answers() {
            let ended = self.qemu.try_wait().unwrap();
            let said = || fs::read_to_string(self.directory.path().join("qemu")).unwrap_or_default();
            assert!(ended.is_none(), "QEMU: {ended:?}: {}", said());
            assert!(began.elapsed() < Duration::from_secs(300), "{}", self.console());
        }
    }

    fn arguments(&self) -> String {
        // The machine is emulated: a handshake takes seconds.
        format!("-F {} -o ConnectTimeout=30", self.directory.path().join("config").display())
    }

    /// The end of what the kernels said.
    fn console(&self) -> String {
        let bytes = fs::read(self.directory.path().join("console")).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes[bytes.len().saturating_sub(4096)..]).into_owned();
        format!("the end of its console:\n{text}")
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = self.qemu.kill();
        let _ = self.qemu.wait();
    }
}

/// Unpacks a suite's kernel, as `cargo xtask stock` has left it.
fn stock(suite: &str, directory: &Path) -> Result<Stock, String> {
    let list = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../target/stock/{suite}.kernel"));
    let packages = fs::read_to_string(&list)
        .map_err(|_| format!("{} is not there; cargo xtask stock {suite} brings it", list.display()))?;
    let unpacked = directory.join(suite);
    // Their paths are absolute and joined by `+`, which is also in their names.
    for package in packages.trim().trim_start_matches('/').split("+/") {
        let status =
            Command::new("dpkg-deb").arg("-x").arg(Path::new("/").join(package)).arg(&unpacked).status();
        assert!(status.unwrap().success(), "{package}");
    }
    let only = |inside: &str| fs::read_dir(unpacked.join(inside)).unwrap().next().unwrap().unwrap().path();
    let modules = only("usr/lib/modules");
    let release = modules.file_name().unwrap().to_str().unwrap().to_string();
    // Older packages have it in /boot, those of Linux 7 beside its modules.
    let images = [unpacked.join(format!("boot/vmlinuz-{release}")), modules.join("vmlinuz")];
    let image = images.into_iter().find(|image| image.exists()).unwrap();
    Ok(Stock { image, modules, release })
}

fn write_root(root: &Path, directory: &Path, kernels: [&Stock; 2]) {
    for place in ["bin", "boot", "etc", "opt/bin", "root", "usr/sbin", "var/empty"] {
        fs::create_dir_all(root.join(place)).unwrap();
    }
    fs::copy("/bin/busybox", root.join("bin/busybox")).unwrap();
    // From OpenSSH 9.8 on an sshd starts other programs.
    let of_sshd = ["sshd-session", "sshd-auth"].map(|name| format!("/usr/lib/openssh/{name}"));
    let of_sshd = of_sshd.iter().map(String::as_str).filter(|path| Path::new(path).exists());
    for program in ["/usr/sbin/sshd", "/usr/sbin/kexec"].into_iter().chain(of_sshd) {
        copy_with_libraries(program, root);
    }
    for Stock { release, modules, .. } in kernels {
        symlink("initrd", root.join(format!("boot/initrd.img-{release}"))).unwrap();
        let there = root.join("modules").join(release);
        fs::create_dir_all(&there).unwrap();
        for module in MODULES {
            let inside = if module == "failover" { "net/core" } else { "drivers/net" };
            let packed = modules.join("kernel").join(inside).join(format!("{module}.ko.xz"));
            let unpacked = Command::new("unxz").arg("-c").arg(packed).output().unwrap();
            assert!(unpacked.status.success(), "{module} of {release}");
            fs::write(there.join(format!("{module}.ko")), unpacked.stdout).unwrap();
        }
    }
    let [own, _] = kernels;
    fs::copy(&own.image, root.join(format!("boot/vmlinuz-{}", own.release))).unwrap();
    program(&root.join("init"), &INIT.replace("MODULES", &MODULES.join(" ")));
    program(&root.join("opt/bin/kexec"), KEXEC);
    for key in ["host", "user"] {
        let mut made = Command::new("ssh-keygen");
        made.args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(directory.join(key));
        assert!(made.status().unwrap().success());
    }
    fs::copy(directory.join("host"), root.join("etc/host_key")).unwrap();
    fs::copy(directory.join("user.pub"), root.join("etc/authorized_keys")).unwrap();
    let passwd = "root:*:0:0:root:/root:/bin/sh\nsshd:*:100:100::/run/sshd:/bin/false\n";
    fs::write(root.join("etc/passwd"), passwd).unwrap();
    fs::write(root.join("etc/group"), "root:x:0:\nsshd:x:100:\n").unwrap();
    fs::write(
        root.join("etc/sshd_config"),
        "HostKey /etc/host_key\nAuthorizedKeysFile /etc/authorized_keys\nStrictModes no\nUsePAM no\nPermitRootLogin yes\n\
         PasswordAuthentication no\nSetEnv PATH=/opt/bin:/bin:/usr/sbin\n",
    )
    .unwrap();
    let packed = Command::new("sh")
        .args(["-c", "find . | /bin/busybox cpio -o -H newc > ../initrd"])
        .current_dir(root)
        .stderr(Stdio::null())
        .status();
    assert!(packed.unwrap().success());
}

fn program(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Copies a program and all that its loader would map for it, to where it lies here.
fn copy_with_libraries(program: &str, root: &Path) {
    let said = Command::new("ldd").arg(program).output().unwrap();
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    let libraries = said.split_whitespace().filter(|word| word.starts_with('/'));
    for file in libraries.chain([program]) {
        let copy = root.join(file.trim_start_matches('/'));
        fs::create_dir_all(copy.parent().unwrap()).unwrap();
        fs::copy(file, copy).unwrap();
    }
}

fn write_client(directory: &Path, port: u16) {
    let here = directory.display();
    let public = fs::read_to_string(directory.join("host.pub")).unwrap();
    fs::write(directory.join("known_hosts"), format!("box {public}")).unwrap();
    fs::write(
        directory.join("config"),
        format!(
            "Host box\n  HostName 127.0.0.1\n  Port {port}\n  User root\n  HostKeyAlias box\n  IdentityFile {here}/user\n  \
             IdentitiesOnly yes\n  UserKnownHostsFile {here}/known_hosts\n"
        ),
    )
    .unwrap();
}

fn boot(directory: &Path, own: &Stock, port: u16) -> Child {
    let file = |name: &str| directory.join(name).display().to_string();
    // One CPU: emulated, several crash now and then where a kernel patches itself. It must not outlive a test that is killed.
    let mut command = Command::new("setpriv");
    let machine = "--pdeathsig KILL qemu-system-x86_64 -M q35 -accel tcg -cpu max -m 2048 -smp 1 -nodefaults \
                   -no-user-config -display none -device virtio-net-pci,netdev=card,romfile=";
    command.args(machine.split(' '));
    command.args(["-netdev", &format!("user,id=card,restrict=on,hostfwd=tcp:127.0.0.1:{port}-10.0.2.15:22")]);
    command.args(["-serial", &format!("file:{}", file("console")), "-initrd", &file("initrd")]);
    command.arg("-kernel").arg(&own.image);
    command.args(["-append", "console=ttyS0 panic=1 tsc=reliable"]);
    let said = fs::File::create(directory.join("qemu")).unwrap();
    command.process_group(0).stdin(Stdio::null()).stdout(Stdio::null()).stderr(said);
    command.spawn().expect("QEMU starts")
}

#[test]
fn a_machine_boots_another_kernel_by_kexec_and_its_own_by_a_reset() {
    let machine = match Machine::start() {
        Ok(machine) => machine,
        Err(why) => return println!("skipped: {why}"),
    };
    let kduel = Kduel::new();
    let new = format!("new:kernel={},append=kduel.test=1", machine.other.image.display());
    let line =
        "run exec --set command=true --set settle=0 --blocks 1 --no-aa --target ssh:box --may-reboot=180 -V";
    let output =
        kduel.command(&support::words(line, &[&new])).env("KDUEL_SSH", machine.arguments()).output().unwrap();
    let said = stderr(&output);
    assert!(output.status.success(), "{said}\n{}", machine.console());
    assert!(reasons(&kduel.trials()).is_empty(), "{:?}", reasons(&kduel.trials()));
    let boots: Vec<_> = kduel.records().into_iter().filter(|record| record["kind"] == "boot").collect();
    assert_eq!(boots.len(), 2, "from its own kernel to the other one, and from that to itself");
    assert_eq!(boots[0]["facts"]["kernel_release"], machine.other.release.as_str(), "{}", boots[0]);
    assert!(boots[0]["facts"]["command_line"].as_str().unwrap().ends_with("kduel.test=1"), "{}", boots[0]);
    for boot in &boots {
        println!("ready after {} s", boot["ready_s"]);
    }
    assert!(said.contains("reboots into its own kernel"), "{said}");
}
