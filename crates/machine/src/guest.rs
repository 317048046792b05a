//! Whether this is a machine that kduel made.

use crate::Root;

/// Where process 1 of a virtual machine of kduel finds what it is told. No other machine has it.
pub const ORDER_PATH: &str = "/kduel/order.json";

/// Whether this is a virtual machine of kduel, which holds no program but kduel itself.
pub fn is_guest(root: &Root) -> bool {
    root.path(ORDER_PATH).exists()
}
