//! Kernel modules that are loaded before the agent starts.

use machine::modules::{self, ModuleError};
use std::fs;
use std::path::Path;

/// Loads a module, with the parameters that the kernel command line has for it. One that is there already is none that
/// failed.
pub(super) fn load(module: &Path) -> Result<(), ModuleError> {
    let name = module.file_stem().unwrap_or_default().to_string_lossy();
    let command_line = fs::read_to_string("/proc/cmdline").unwrap_or_default();
    modules::load(module, &parameters(&command_line, &name))
}

/// The kernel takes `NAME.PARAMETER` only for what is built in; for a module it is handed over here. In names of modules
/// the hyphen and the underscore are one.
fn parameters(command_line: &str, module: &str) -> String {
    let module = module.replace('-', "_");
    let words = command_line.split_whitespace().filter_map(|word| {
        let (name, parameter) = word.split_once('.')?;
        (name.replace('-', "_") == module).then_some(parameter)
    });
    words.collect::<Vec<&str>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_those_of_the_module_alone() {
        let line = "quiet virtio_mmio.device=512@0xfeb00e00:12 a.b=c virtio-mmio.device=512@0xfeb00c00:11";
        assert_eq!(parameters(line, "virtio-mmio"), "device=512@0xfeb00e00:12 device=512@0xfeb00c00:11");
        assert_eq!(parameters(line, "a"), "b=c");
        assert_eq!(parameters(line, "quiet"), "");
    }
}
