//! Kernels of another machine changed by a real kexec. The machine is a virtual one whose sshd listens on virtio ports, so
//! that it needs no network; a real reset takes it back to the kernel that QEMU gives it.
//!
//! It takes some minutes where machines are emulated, and programs that CI does not bring:
//! `apt-get install openssh-server busybox-static kexec-tools socat`.

#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "support.rs"]
mod support;

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use support::{Kduel, reasons, stderr};
use tempfile::TempDir;

const KERNELS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/kernels");
const OWN: &str = "6.12.117+deb13-cloud-amd64";
const OTHER: &str = "7.3.4+deb13-cloud-amd64";
/// A port serves one connection after the other, and what is left of one would be read by the next; so they take turns.
const PORTS: usize = 8;

/// Process 1 of the machine: an sshd for each connection to each port. The `reboot` of busybox asks it by a signal.
const INIT: &str = r#"#!/bin/busybox sh
/bin/busybox --install -s /bin
mkdir -p /proc /sys /dev /run /tmp
mount -t proc proc /proc; mount -t sysfs sysfs /sys; mount -t devtmpfs dev /dev
mkdir -p /run/sshd; : > /boot/initrd; hostname box
for port in /sys/class/virtio-ports/vport*; do
    name=${port##*/}
    ( while :; do /usr/sbin/sshd -i -f /etc/sshd_config 0<>/dev/$name 1>&0; sleep 0.2; done ) &
done
trap "/bin/busybox reboot -f" TERM
while :; do wait; done
"#;

/// The initramfs of the next kernel is all that is there now, the copy of kduel included.
const KEXEC: &str = r#"#!/bin/sh
if [ "$1" = -l ]; then
    cd / && find . -xdev ! -path ./boot/initrd | cpio -o -H newc > /boot/initrd.new 2>/dev/null
    mv /boot/initrd.new /boot/initrd
fi
exec /usr/sbin/kexec "$@"
"#;

struct Machine {
    directory: TempDir,
    qemu: Child,
}

impl Machine {
    fn start() -> Result<Machine, String> {
        for (program, package) in [
            ("/usr/bin/qemu-system-x86_64", "qemu-system-x86"),
            ("/usr/sbin/sshd", "openssh-server"),
            ("/bin/busybox", "busybox-static"),
            ("/usr/sbin/kexec", "kexec-tools"),
            ("/usr/bin/socat", "socat"),
        ] {
            if !Path::new(program).exists() {
                return Err(format!("{program} is not there (Debian: {package})"));
            }
        }
        if !kernel(OWN).exists() || !kernel(OTHER).exists() {
            return Err(format!("the test kernels are not in {KERNELS}"));
        }
        let directory = TempDir::new().unwrap();
        write_root(&directory.path().join("root"), directory.path());
        write_client(directory.path());
        let qemu = boot(directory.path());
        let machine = Machine { directory, qemu };
        machine.wait_until_it_answers();
        Ok(machine)
    }

    fn wait_until_it_answers(&self) {
        let began = Instant::now();
        let answers = || {
            let mut ssh = Command::new("ssh");
            ssh.args(self.arguments().split(' ')).args(["-o", "BatchMode=yes", "box", "true"]);
            ssh.stdin(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
        };
        while !answers() {
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

fn kernel(release: &str) -> PathBuf {
    Path::new(KERNELS).join(format!("vmlinuz-{release}"))
}

fn write_root(root: &Path, directory: &Path) {
    for place in ["bin", "boot", "etc", "opt/bin", "root", "usr/sbin", "var/empty"] {
        fs::create_dir_all(root.join(place)).unwrap();
    }
    fs::copy("/bin/busybox", root.join("bin/busybox")).unwrap();
    for program in ["/usr/sbin/sshd", "/usr/sbin/kexec"] {
        copy_with_libraries(program, root);
    }
    for release in [OWN, OTHER] {
        symlink("initrd", root.join(format!("boot/initrd.img-{release}"))).unwrap();
    }
    fs::copy(kernel(OWN), root.join(format!("boot/vmlinuz-{OWN}"))).unwrap();
    program(&root.join("init"), INIT);
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

fn write_client(directory: &Path) {
    let here = directory.display();
    let turns = format!(
        "#!/bin/sh\nturn=$(cat {here}/turn 2>/dev/null || echo 0)\necho $(( (turn + 1) % {PORTS} )) > {here}/turn\n\
         exec socat - UNIX:{here}/port$turn\n"
    );
    program(&directory.join("connect"), &turns);
    let public = fs::read_to_string(directory.join("host.pub")).unwrap();
    fs::write(directory.join("known_hosts"), format!("box {public}")).unwrap();
    fs::write(
        directory.join("config"),
        format!(
            "Host box\n  User root\n  HostKeyAlias box\n  IdentityFile {here}/user\n  IdentitiesOnly yes\n  \
             UserKnownHostsFile {here}/known_hosts\n  ProxyCommand {here}/connect\n"
        ),
    )
    .unwrap();
}

fn boot(directory: &Path) -> Child {
    let file = |name: &str| directory.join(name).display().to_string();
    // One CPU: emulated, several crash now and then where a kernel patches itself. It must not outlive a test that is killed.
    let mut command = Command::new("setpriv");
    let machine = "--pdeathsig KILL qemu-system-x86_64 -M q35 -accel tcg -cpu max -m 2048 -smp 1 -nodefaults \
                   -no-user-config -display none -device virtio-serial-pci";
    command.args(machine.split(' '));
    command.args(["-serial", &format!("file:{}", file("console")), "-initrd", &file("initrd")]);
    command.arg("-kernel").arg(kernel(OWN));
    command.args(["-append", "console=ttyS0 panic=1 tsc=reliable"]);
    for port in 0..PORTS {
        let socket = format!("socket,id=port{port},path={},server=on,wait=off", file(&format!("port{port}")));
        command.args(["-chardev", &socket, "-device"]);
        command.arg(format!("virtserialport,chardev=port{port},name=port{port}"));
    }
    command.process_group(0).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().expect("QEMU starts")
}

/// Asked for by hand (`cargo test -p kduel --test ssh_vm -- --ignored`): ssh over the serial lines of an emulated machine loses
/// bytes now and then across a kexec, and says so by a wrong message authentication code.
#[test]
#[ignore = "ssh over emulated serial lines loses bytes now and then"]
fn a_machine_boots_another_kernel_by_kexec_and_its_own_by_a_reset() {
    let machine = match Machine::start() {
        Ok(machine) => machine,
        Err(why) => return println!("skipped: {why}"),
    };
    let kduel = Kduel::new();
    let new = format!("new:kernel={},append=kduel.test=1", kernel(OTHER).display());
    let line =
        "run exec --set command=true --set settle=0 --blocks 1 --no-aa --target ssh:box --may-reboot=180 -V";
    let output =
        kduel.command(&support::words(line, &[&new])).env("KDUEL_SSH", machine.arguments()).output().unwrap();
    let said = stderr(&output);
    assert!(output.status.success(), "{said}\n{}", machine.console());
    assert!(reasons(&kduel.trials()).is_empty(), "{:?}", reasons(&kduel.trials()));
    let boots: Vec<_> = kduel.records().into_iter().filter(|record| record["kind"] == "boot").collect();
    assert_eq!(boots.len(), 2, "from its own kernel to the other one, and from that to itself");
    assert_eq!(boots[0]["facts"]["kernel_release"], OTHER, "{}", boots[0]);
    assert!(boots[0]["facts"]["command_line"].as_str().unwrap().ends_with("kduel.test=1"), "{}", boots[0]);
    for boot in &boots {
        println!("ready after {} s", boot["ready_s"]);
    }
    assert!(said.contains("reboots into its own kernel"), "{said}");
}
