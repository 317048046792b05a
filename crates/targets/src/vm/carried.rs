//! The modules that a machine is given for the work in it, as files: the work loads them itself, with its parameters.

use super::VmError;
use crate::kernel::{Kernel, Module};
use machine::KernelConfig;
use machine::modules::ModuleNeed;

/// The modules that are needed, with what they depend on. One that is built into the kernel is left to the work, which
/// knows whether it can do with that.
pub(super) fn carried(kernel: &Kernel, needs: &[ModuleNeed]) -> Result<Vec<Module>, VmError> {
    let config = kernel.config.as_deref().map(KernelConfig::parse);
    let built = |need: &ModuleNeed| config.as_ref().map(|config| config.value(need.option));
    let apart: Vec<&ModuleNeed> = needs.iter().filter(|need| built(need) != Some("y")).collect();
    let mut modules: Vec<Module> = Vec::new();
    for need in apart {
        let found = kernel.modules.closure(&[need.name]).map_err(|error| VmError::Module {
            error: Box::new(error),
            option: need.option,
            built: match built(need) {
                None => "",
                Some("n") => ", and this kernel was built without it; docs/kernels.md says how to build one that has it",
                Some(_) => ", and this kernel was built with it, so they are elsewhere: `make modules` builds them in \
                            its tree, and a distribution has them in a package of their own",
            },
        })?;
        for module in found {
            if !modules.iter().any(|known| known.name == module.name) {
                modules.push(module);
            }
        }
    }
    Ok(modules)
}
