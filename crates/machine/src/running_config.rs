//! The configuration of the kernel that runs.

use crate::Root;
use experiment::KernelConfig;
use flate2::read::GzDecoder;
use std::fs::File;
use std::io::Read as _;

/// Unpacked, a kernel configuration is some hundred KiB; what is much larger is something else.
const BYTES_MAX: u64 = 8 << 20;

/// The configuration of the running kernel and where it was found: /proc/config.gz, or where distributions and build
/// trees keep it. `None` where it is nowhere.
pub fn running_config(root: &Root) -> Option<(KernelConfig, String)> {
    let found = |text: String, place: &str| {
        KernelConfig::is_in(&text).then(|| (KernelConfig::parse(&text), format!("/{place}")))
    };
    let packed = "proc/config.gz";
    if let Some(config) = unpacked(root, packed).and_then(|text| found(text, packed)) {
        return Some(config);
    }
    let release = root.text("proc/sys/kernel/osrelease").ok()?;
    let kept = [
        format!("boot/config-{release}"),
        format!("lib/modules/{release}/config"),
        format!("usr/lib/modules/{release}/config"),
    ];
    let kept = kept.iter().find_map(|place| found(root.text(place).ok()?, place));
    kept.or_else(|| {
        // A build tree goes on living after its kernel was installed: it must still be of this release.
        let tree = format!("lib/modules/{release}/build");
        let built = root.text(format!("{tree}/include/config/kernel.release")).ok()?;
        let place = format!("{tree}/.config");
        if built == release { found(root.text(&place).ok()?, &place) } else { None }
    })
}

fn unpacked(root: &Root, place: &str) -> Option<String> {
    let packed = File::open(root.path(place)).ok()?;
    let mut text = String::new();
    GzDecoder::new(packed).take(BYTES_MAX).read_to_string(&mut text).ok()?;
    Some(text)
}
