//! Measures the memory of a piece of code: on its own thread, or of the whole process.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicIsize, AtomicUsize, Ordering};

/// The system's allocator, with counters of the bytes that each thread and the process hold.
struct Meter;

#[global_allocator]
static METER: Meter = Meter;

static LIVE: AtomicIsize = AtomicIsize::new(0);
static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static HELD: Cell<isize> = const { Cell::new(0) };
    static PEAK: Cell<isize> = const { Cell::new(0) };
}

fn count(bytes: isize) {
    if bytes > 0 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
    }
    LIVE.fetch_add(bytes, Ordering::Relaxed);
    // Neither needs memory or a destructor, so they exist as long as their thread allocates.
    let held = HELD.get() + bytes;
    HELD.set(held);
    PEAK.set(PEAK.get().max(held));
}

// SAFETY: Every call is passed on to the system's allocator unchanged, and its result is returned.
unsafe impl GlobalAlloc for Meter {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: The caller guarantees the requirements of the system's allocator.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: The caller guarantees the requirements of the system's allocator.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: The caller guarantees the requirements of the system's allocator.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size as isize - layout.size() as isize);
        // SAFETY: The caller guarantees the requirements of the system's allocator.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

/// The bytes that the process holds. Useful only for a test in its own process.
pub fn live_bytes() -> usize {
    usize::try_from(LIVE.load(Ordering::Relaxed)).unwrap_or_default()
}

/// The allocations of the process so far, those that grew included. Useful only for a test in its own process.
pub fn allocations() -> usize {
    ALLOCATIONS.load(Ordering::Relaxed)
}

/// Runs a closure, and returns the peak of the bytes that this thread allocated in addition to those before.
pub fn peak_bytes(run: impl FnOnce()) -> usize {
    let before = HELD.get();
    PEAK.set(before);
    run();
    usize::try_from(PEAK.get() - before).unwrap_or_default()
}

#[test]
fn freed_memory_counts_as_allocated() {
    let peak = peak_bytes(|| {
        drop(std::hint::black_box(vec![0_u8; 1_000]));
        drop(std::hint::black_box(vec![1_u8; 500]));
    });
    assert!((1_000..1_100).contains(&peak), "{peak}");
}
