//! Freed memory goes back to the system.

/// Has the allocator give back to the system what was freed.
///
/// glibc gives back by itself only what lies at the end of an arena, and of what thousands of regions took there is always
/// something left at the end. It takes about a tenth of a second for each gigabyte, during which threads that need memory
/// may wait. Other systems' allocators give back by themselves.
#[doc(hidden)]
pub fn return_freed_memory() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        // SAFETY: This is how glibc declares it. Any thread may call it at any time.
        unsafe extern "C" {
            safe fn malloc_trim(pad: usize) -> std::ffi::c_int;
        }
        // Whether there was anything to give back makes no difference.
        let _ = malloc_trim(0);
    }
}
