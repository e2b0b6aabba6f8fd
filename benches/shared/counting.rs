//! An allocator that counts on request.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

/// Counts allocated bytes that are not freed yet while [`COUNTING`] is set.
struct CountingAllocator;

static COUNTING: AtomicBool = AtomicBool::new(false);
static ALLOCATED: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call is forwarded to the system's allocator with unchanged arguments, and returns its result unchanged.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if COUNTING.load(Relaxed) {
            ALLOCATED.fetch_add(layout.size(), Relaxed);
        }
        // SAFETY: the caller upholds the contract of this same function.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        if COUNTING.load(Relaxed) {
            ALLOCATED.fetch_sub(layout.size(), Relaxed);
        }
        // SAFETY: the caller upholds the contract of this same function, and `alloc` took the pointer from `System`.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        if COUNTING.load(Relaxed) {
            ALLOCATED.fetch_add(new_size, Relaxed);
            ALLOCATED.fetch_sub(layout.size(), Relaxed);
        }
        // SAFETY: the caller upholds the contract of this same function, and `alloc` took the pointer from `System`.
        unsafe { System.realloc(pointer, layout, new_size) }
    }
}

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// Calls `make` and returns the bytes that its result holds, with the result.
pub fn held_by<T>(make: impl FnOnce() -> T) -> (usize, T) {
    ALLOCATED.store(0, Relaxed);
    COUNTING.store(true, Relaxed);
    let made = make();
    COUNTING.store(false, Relaxed);
    (ALLOCATED.load(Relaxed), made)
}
