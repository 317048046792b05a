//! What is said to the shell of another machine. The scripts are for any POSIX shell and travel as one argument, so that the
//! login shell, which may be of any kind, only has to understand single quotes: they are one line, and hold none.
//!
//! What they answer is read by [`Answer`](super::answer::Answer).

/// A command for another machine.
#[derive(Debug, Clone)]
pub(crate) struct Script {
    /// What it does, as in "while it was ...".
    pub(crate) doing: &'static str,
    parts: &'static [&'static str],
    arguments: Vec<String>,
}

/// The line after which an answer begins; what a login shell prints by itself comes before it.
pub(crate) const ANSWER: &str = "kduel-host";
/// The line after which the agent has the stream.
pub(crate) const AGENT: &str = "kduel-agent";
/// The variable that marks the agents of a run, and all that they start, with the name of the run.
pub const RUN_VARIABLE: &str = "KDUEL_RUN";

/// What most scripts need: where kduel keeps things there, and words for what they do several times.
const HEAD: &str = r#"
    umask 077; PATH="$PATH:/usr/local/sbin:/usr/sbin:/sbin";
    cache="${XDG_CACHE_HOME:-$HOME/.cache}/kduel";
    tell() { printf "%s\n" "$1"; };
    as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi; };
    whole() { (
        cd "$1" 2>/dev/null || exit 1; shift;
        for line in "$@"; do tell "$line"; done | sha256sum -c >/dev/null 2>&1
    ); };
    tell kduel-host;
"#;

/// Which boot of which kernel this is, and what an earlier run has left written about the first one.
const STATE: &str = r#"
    tell "system=$(uname -s)"; tell "processor=$(uname -m)";
    tell "boot=$(cat /proc/sys/kernel/random/boot_id)";
    tell "release=$(cat /proc/sys/kernel/osrelease)";
    tell "build=$(cat /proc/sys/kernel/version)";
    tell "command_line=$(cat /proc/cmdline)";
    if [ -f "$cache/left" ]; then cat "$cache/left"; fi;
"#;

/// Arguments: the parcel, then its sums.
const LOOK: &str = r#"
    lacks=""; for program in sha256sum tar;
    do command -v "$program" >/dev/null 2>&1 || lacks="$lacks $program"; done; tell "lacks=$lacks";
    dir="$cache/$1"; shift;
    if [ -d "$dir" ]; then :; else tell parcel=absent; exit 0; fi;
    if whole "$dir" "$@"; then tell parcel=whole; else tell parcel=torn; exit 0; fi;
    touch "$dir";
"#;

/// Goes on from `LOOK`.
const START: &str = r#"
    if "$loader" --library-path "$dir" "$dir/kduel" recover --run "$run" </dev/null 2>&1;
    then :; else tell "failed=$?"; exit 0; fi;
    tell kduel-agent;
    exec env KDUEL_RUN="$run" "$loader" --library-path "$dir" "$dir/kduel" agent --capsule "$dir";
"#;

/// Arguments: the loader, the parcel, the run, the sums. Leaves those of `LOOK`.
const TAKE_LOADER: &str =
    r#" loader="$cache/$2/$1"; parcel="$2"; run="$3"; shift 3; set -- "$parcel" "$@"; "#;

/// Arguments: the parcel, then its sums; the files as tar on standard input. Whatever has not been used for a month goes.
const INSTALL: &str = r#"
    new="$cache/new.$$"; clean() { rm -rf "$new"; }; trap clean EXIT;
    mkdir -p "$new" || exit 1;
    find "$cache" -mindepth 1 -maxdepth 1 -type d -mtime +30 -exec rm -rf {} + 2>/dev/null;
    parcel="$1"; shift;
    tar -x -f - -C "$new" || exit 1;
    whole "$new" "$@" || { tell parcel=torn; exit 0; };
    rm -rf "$cache/$parcel"; mv "$new" "$cache/$parcel" && tell parcel=whole;
"#;

/// What the machine offers to boot another kernel with.
const WAYS: &str = r#"
    if as_root true >/dev/null 2>&1; then tell root=yes; else tell root=no; fi;
    if command -v kexec >/dev/null 2>&1; then tell kexec=yes; else tell kexec=no; fi;
    tell "kexec_disabled=$(cat /proc/sys/kernel/kexec_load_disabled 2>/dev/null || echo none)";
    for program in bootctl grub-reboot grub2-reboot;
    do if command -v "$program" >/dev/null 2>&1; then tell entries=yes; break; fi; done;
"#;

/// Arguments: the path of an image or nothing, and the release of a kernel or nothing. Finds the one by the other, and the
/// initramfs and modules of that release.
const FIND_KERNEL: &str = r#"
    image="$1"; release="$2";
    if [ -z "$image" ]; then
        for file in "/boot/vmlinuz-$release" "/boot/kernel-$release" "/lib/modules/$release/vmlinuz"
            "/usr/lib/modules/$release/vmlinuz";
        do if [ -f "$file" ]; then image="$file"; break; fi; done;
    fi;
    if [ -f "$image" ]; then
        case "$image" in (/*) ;; (*) image="$PWD/$image";; esac;
        tell "image=$image";
        if [ "$(as_root dd if="$image" bs=1 skip=514 count=4 2>/dev/null)" = HdrS ]; then
            offset="$(as_root od -An -tu2 -j 526 -N 2 "$image" | tr -d " ")";
            banner="$(as_root dd if="$image" bs=1 skip=$((offset + 512)) count=256 2>/dev/null | tr "\000" "\n" | head -n 1)";
            tell "banner=$banner";
            release="${banner%% *}";
        fi;
    fi;
    if [ -n "$release" ]; then
        for file in "/boot/initrd.img-$release" "/boot/initramfs-$release.img" "/boot/initrd-$release"
            "/boot/initramfs-$release";
        do if [ -f "$file" ]; then tell "initramfs=$file"; break; fi; done;
        if [ -d "/lib/modules/$release" ]; then tell modules=yes; else tell modules=no; fi;
    fi;
"#;

/// Arguments: the image (in kduel's cache unless its path is absolute), the initramfs or nothing, the command line. The
/// second way is for kernels that only take signed ones.
const LOAD: &str = r#"
    case "$1" in (/*) image="$1";; (*) image="$cache/$1";; esac;
    line="$3";
    if [ -n "$2" ]; then set -- "--initrd=$2"; else set --; fi;
    as_root kexec -l "$image" "$@" "--command-line=$line" 2>&1
        || as_root kexec -s -l "$image" "$@" "--command-line=$line" 2>&1 || exit 1;
"#;

/// Argument: the entry.
const CHOOSE_ENTRY: &str = r#"
    if command -v bootctl >/dev/null 2>&1 && as_root bootctl is-installed >/dev/null 2>&1;
    then as_root bootctl set-oneshot "$1" 2>&1 || exit 1;
    elif command -v grub-reboot >/dev/null 2>&1; then as_root grub-reboot "$1" 2>&1 || exit 1;
    else as_root grub2-reboot "$1" 2>&1 || exit 1; fi;
"#;

/// Forgets a kernel that is loaded for kexec.
const UNLOAD: &str = r#" as_root kexec -u >/dev/null 2>&1 || :; "#;

/// Forgets the entry that `CHOOSE_ENTRY` chose.
const UNCHOOSE_ENTRY: &str = r#"
    if command -v bootctl >/dev/null 2>&1 && as_root bootctl is-installed >/dev/null 2>&1;
    then as_root bootctl set-oneshot "" 2>&1 || exit 1;
    elif command -v grub-editenv >/dev/null 2>&1; then as_root grub-editenv - unset next_entry 2>&1 || exit 1;
    else as_root grub2-editenv - unset next_entry 2>&1 || exit 1; fi;
"#;

/// Argument: `kexec` or `reboot`. systemd ends everything in order; without it the jump waits until ssh has said goodbye, for
/// a connection that nobody closes looks like one that waits. The program is looked for before that wait.
const LEAVE: &str = r#"
    sync; program="$(command -v "$1")";
    if [ "$1" = kexec ]; then set -- kexec "$program" -e; else set -- reboot "$program"; fi;
    if [ -d /run/systemd/system ]; then as_root systemctl "$1" 2>&1 || exit 1;
    else shift; ( sleep 1; as_root "$@" ) </dev/null >/dev/null 2>&1 & fi;
"#;

/// Waits until the services of a machine that has just booted have started, since they would disturb what is measured.
const SETTLE: &str = r#"
    if [ -d /run/systemd/system ]; then
        tell "settled=$(timeout 120 systemctl is-system-running --wait 2>/dev/null || :)";
    fi;
"#;

/// The new text on standard input.
const WRITE_LEFT: &str = r#"
    mkdir -p "$cache" && cat > "$cache/left.new" && mv "$cache/left.new" "$cache/left" || exit 1; sync;
"#;

const REMOVE_LEFT: &str = r#" rm -f "$cache/left"; "#;

/// Arguments as of `START` without sums.
const SWEEP: &str = r#"
    dir="$cache/$1";
    if [ -d "$dir" ]; then "$loader" --library-path "$dir" "$dir/kduel" recover --run "$run" </dev/null 2>&1
        || tell "failed=$?"; fi;
"#;

fn strings<'a>(first: impl IntoIterator<Item = &'a str>, sums: &[String]) -> Vec<String> {
    first.into_iter().map(str::to_string).chain(sums.iter().cloned()).collect()
}

impl Script {
    fn new(doing: &'static str, parts: &'static [&'static str], arguments: Vec<String>) -> Script {
        Script { doing, parts, arguments }
    }

    /// Says which boot this is, puts back what lost agents have left, and gives the stream to an agent if the capsule is
    /// there and whole.
    pub(crate) fn start_agent(parcel: &str, loader: &str, run: &str, sums: &[String]) -> Script {
        let arguments = strings([loader, parcel, run], sums);
        Script::new("starting an agent", &[HEAD, STATE, TAKE_LOADER, LOOK, START], arguments)
    }

    /// Puts back what lost agents have left, by a capsule that is there.
    pub(crate) fn sweep(parcel: &str, loader: &str, run: &str) -> Script {
        let arguments = strings([loader, parcel, run], &[]);
        Script::new("putting back what an agent has left", &[HEAD, TAKE_LOADER, SWEEP], arguments)
    }

    /// Which boot this is.
    pub(crate) fn state() -> Script {
        Script::new("saying which kernel it runs", &[HEAD, STATE], Vec::new())
    }

    /// Whether a parcel is there.
    pub(crate) fn look(parcel: &str, sums: &[String]) -> Script {
        Script::new("looking at what was copied", &[HEAD, LOOK], strings([parcel], sums))
    }

    /// Takes a parcel from standard input.
    pub(crate) fn install(parcel: &str, sums: &[String]) -> Script {
        Script::new("taking files", &[HEAD, INSTALL], strings([parcel], sums))
    }

    /// What it can reboot with.
    pub(crate) fn ways() -> Script {
        Script::new("saying how it may be rebooted", &[HEAD, WAYS], Vec::new())
    }

    /// Where the image, the initramfs and the modules of a kernel are, by its image or its release.
    pub(crate) fn find_kernel(image: &str, release: &str) -> Script {
        Script::new("looking for a kernel", &[HEAD, FIND_KERNEL], strings([image, release], &[]))
    }

    /// Loads a kernel for kexec.
    pub(crate) fn load(image: &str, initramfs: &str, command_line: &str) -> Script {
        Script::new("loading a kernel", &[HEAD, LOAD], strings([image, initramfs, command_line], &[]))
    }

    /// Makes a boot entry that of the next boot only.
    pub(crate) fn choose_entry(entry: &str) -> Script {
        Script::new("choosing a boot entry", &[HEAD, CHOOSE_ENTRY], strings([entry], &[]))
    }

    /// Jumps into the kernel that was loaded.
    pub(crate) fn leave_by_kexec() -> Script {
        Script::new("going down", &[HEAD, LEAVE], strings(["kexec"], &[]))
    }

    /// Reboots as the firmware and the boot loader do by themselves. A kernel that is still loaded would be taken instead:
    /// `systemctl reboot` does so from systemd 254 on.
    pub(crate) fn leave_by_reboot() -> Script {
        Script::new("going down", &[HEAD, UNLOAD, LEAVE], strings(["reboot"], &[]))
    }

    /// Takes back [`Script::load`].
    pub(crate) fn unload() -> Script {
        Script::new("forgetting a kernel that was loaded", &[HEAD, UNLOAD], Vec::new())
    }

    /// Takes back [`Script::choose_entry`].
    pub(crate) fn unchoose_entry() -> Script {
        Script::new("forgetting the boot entry that was chosen", &[HEAD, UNCHOOSE_ENTRY], Vec::new())
    }

    /// Waits until its services have started.
    pub(crate) fn settle() -> Script {
        Script::new("starting its services", &[HEAD, SETTLE], Vec::new())
    }

    /// Keeps the text on standard input for the next kduel.
    pub(crate) fn write_left() -> Script {
        Script::new("writing down which kernel it ran", &[HEAD, WRITE_LEFT], Vec::new())
    }

    /// Forgets that text.
    pub(crate) fn remove_left() -> Script {
        Script::new("forgetting which kernel it ran", &[HEAD, REMOVE_LEFT], Vec::new())
    }

    /// The command line for the login shell.
    pub(crate) fn line(&self) -> String {
        let lines = self.parts.iter().flat_map(|part| part.lines()).map(str::trim);
        let text: Vec<&str> = lines.filter(|line| !line.is_empty()).collect();
        let mut line = format!("exec sh -c {} kduel", quoted(&text.join(" ")));
        for argument in &self.arguments {
            line.push(' ');
            line.push_str(&quoted(argument));
        }
        line
    }
}

/// A word as every shell takes it.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    fn all() -> Vec<Script> {
        let sums = ["0  kduel".to_string()];
        vec![
            Script::start_agent("p", "ld.so", "run", &sums),
            Script::sweep("p", "ld.so", "run"),
            Script::state(),
            Script::look("p", &sums),
            Script::install("p", &sums),
            Script::ways(),
            Script::find_kernel("", "6.12"),
            Script::load("p/image", "", "root=/dev/sda1 quiet"),
            Script::choose_entry("Advanced options>Debian's"),
            Script::leave_by_kexec(),
            Script::leave_by_reboot(),
            Script::unload(),
            Script::unchoose_entry(),
            Script::settle(),
            Script::write_left(),
            Script::remove_left(),
        ]
    }

    #[test]
    fn scripts_are_one_line_that_any_login_shell_takes() {
        for script in all() {
            let line = script.line();
            assert!(!line.contains('\n'), "{line}");
            let text: String = script.parts.concat();
            assert!(!text.contains('\'') && !text.contains('!') && !text.contains('#'), "{text}");
        }
    }

    #[test]
    fn scripts_are_understood_by_sh() {
        for script in all() {
            // The shell takes the quotes off again and hands the text to a shell that only checks it.
            let checked = script.line().replacen("sh -c ", "sh -n -c ", 1);
            let status = Command::new("sh").args(["-c", &checked]).status().unwrap();
            assert!(status.success(), "{checked}");
        }
    }

    #[test]
    fn arguments_arrive_to_the_letter_whatever_the_login_shell() {
        let mut tried = 0;
        for shell in ["sh", "bash", "zsh", "fish", "tcsh"] {
            for word in ["", "it's", "a b", "$HOME", "\\n", "`x`", "a\"b", "--", "*", "~", "&&", "a;b"] {
                let echo = Script::new("", &["printf %s \"$1\""], vec![word.into()]);
                let Ok(output) = Command::new(shell).args(["-c", &echo.line()]).output() else { break };
                assert_eq!(String::from_utf8(output.stdout).unwrap(), word, "{shell}");
                tried += 1;
            }
        }
        assert!(tried > 0, "every machine has sh");
    }
}
