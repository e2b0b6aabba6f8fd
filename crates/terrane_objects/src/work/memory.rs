//! Returns freed memory to the system.

/// Makes the allocator return freed memory to the system.
///
/// By itself, glibc only returns memory at the end of an arena, and with thousands of regions something is always left
/// there. This takes about a tenth of a second per gigabyte, during which threads that need memory may wait.
/// Allocators of other systems return memory by themselves.
pub fn return_freed_memory() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        // SAFETY: This is how glibc declares it. Any thread may call it at any time.
        unsafe extern "C" {
            safe fn malloc_trim(pad: usize) -> std::ffi::c_int;
        }
        // The result does not matter: it is 1 if any memory was returned.
        let _ = malloc_trim(0);
    }
}
