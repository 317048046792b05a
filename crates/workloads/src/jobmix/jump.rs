//! A jump out of many frames at once, as `longjmp` makes it. That one returns twice, which Rust does not allow; this one
//! leaves a call early.

#[cfg(target_arch = "x86_64")]
mod machine {
    use std::arch::naked_asm;

    /// What a function must find again when it returns: the registers that belong to its caller, and the stack.
    #[repr(C)]
    #[derive(Default)]
    pub struct Mark([u64; 7]);

    /// Calls `body(mark, depth, value)` after it has written into `mark` how to return from here. Returns what `body` does, or
    /// what [`leave`] is given.
    ///
    /// # Safety
    /// [`leave`] may be called with `mark` only before this returns, and from frames that have nothing to drop.
    #[unsafe(naked)]
    pub unsafe extern "C" fn enter(
        mark: *mut Mark,
        depth: u32,
        value: u32,
        body: unsafe extern "C" fn(*mut Mark, u32, u32) -> u32,
    ) -> u32 {
        naked_asm!(
            "mov [rdi], rbx",
            "mov [rdi + 8], rbp",
            "mov [rdi + 16], r12",
            "mov [rdi + 24], r13",
            "mov [rdi + 32], r14",
            "mov [rdi + 40], r15",
            "mov [rdi + 48], rsp",
            // A call finds the stack on a multiple of 16.
            "sub rsp, 8",
            "call rcx",
            "add rsp, 8",
            "ret",
        )
    }

    /// Returns from the call of [`enter`] that has written `mark`, with `value`.
    ///
    /// # Safety
    /// As there.
    #[unsafe(naked)]
    pub unsafe extern "C" fn leave(mark: *const Mark, value: u32) -> ! {
        naked_asm!(
            "mov rbx, [rdi]",
            "mov rbp, [rdi + 8]",
            "mov r12, [rdi + 16]",
            "mov r13, [rdi + 24]",
            "mov r14, [rdi + 32]",
            "mov r15, [rdi + 40]",
            "mov rsp, [rdi + 48]",
            "mov eax, esi",
            "ret",
        )
    }
}

/// Goes `depth` frames deep, jumps out of all of them, and returns the `value` that the jump brought.
#[cfg(target_arch = "x86_64")]
pub fn out_of(depth: u32, value: u32) -> u32 {
    use machine::{Mark, enter, leave};

    #[inline(never)]
    unsafe extern "C" fn descend(mark: *mut Mark, depth: u32, value: u32) -> u32 {
        if depth <= 1 {
            // SAFETY: The mark is that of the call below, which has not returned, and these frames drop nothing.
            unsafe { leave(mark, value) };
        }
        // The addition keeps this frame on the stack, which a call at the very end would not need.
        // SAFETY: As above.
        std::hint::black_box(unsafe { descend(mark, depth - 1, value) }) + 1
    }
    let mut mark = Mark::default();
    // SAFETY: The mark is used within this call only, and the frames between drop nothing.
    unsafe { enter(&mut mark, depth, value, descend) }
}

/// The same by unwinding the stack, which costs more.
#[cfg(not(target_arch = "x86_64"))]
pub fn out_of(depth: u32, value: u32) -> u32 {
    #[inline(never)]
    fn descend(depth: u32, value: u32) -> u32 {
        if depth <= 1 {
            std::panic::resume_unwind(Box::new(value));
        }
        std::hint::black_box(descend(depth - 1, value)) + 1
    }
    let landed = std::panic::catch_unwind(|| descend(depth, value));
    landed.map_or_else(|brought| brought.downcast().map_or(0, |value| *value), |value| value)
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_jump_brings_its_value_and_keeps_what_the_caller_has() {
        let kept: Vec<u32> = (0..100).collect();
        let brought: u32 = kept.iter().map(|value| super::out_of(1 + value % 20, *value)).sum();
        assert_eq!((brought, kept.len()), (4950, 100));
    }
}
