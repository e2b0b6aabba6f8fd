//! [`QuadMemory`]: the quads of all meshes, in one buffer of the graphics card.
//!
//! A mesh is a range of the buffer, which its entity's `MeshTag` names, and one of a few shared `Mesh`es, which only count corners.
//! So the entities of all chunks share one bind group, and those with equally many quads one draw call.

use super::quads::Quad;
use bevy::asset::RenderAssetUsages;
use bevy::mesh::{Indices, MeshVertexAttribute, PrimitiveTopology, VertexFormat};
use bevy::platform::collections::HashMap;
use bevy::prelude::*;
use bevy::render::render_resource::{Buffer, BufferDescriptor, BufferUsages, CommandEncoderDescriptor};
use bevy::render::renderer::{RenderDevice, RenderQueue};
use crossbeam_channel::{Receiver, Sender, unbounded};
use offset_allocator::{Allocation, Allocator};
use std::collections::VecDeque;
use std::mem;

/// The number of a corner, four for each quad.
pub(super) const CORNER: MeshVertexAttribute =
    MeshVertexAttribute::new("ChunkCorner", 0x7E44_A9E0, VertexFormat::Uint32);

/// The number of quads in the first arena. Each further one is as large as all before it.
const FIRST_ARENA: u32 = 1 << 16;
/// The largest number of meshes in an arena.
const MESHES: u32 = 1 << 16;
/// The renderer may still draw the frame before the last one.
const FRAMES: u64 = 3;
const QUAD_BYTES: u64 = size_of::<Quad>() as u64;

/// A range of the buffer. Dropping it gives it back, once the renderer does not draw it any more.
pub(super) struct QuadRange {
    /// The number of its first quad.
    pub first: u32,
    /// The number of quads, rounded up to one of the sizes that share a `Mesh`.
    pub size: u32,
    place: Place,
    home: Sender<Place>,
}

/// The arena of a range, and its allocation there.
type Place = (usize, Allocation);

impl Drop for QuadRange {
    fn drop(&mut self) {
        // The memory itself may be gone, at the end of the app.
        let _ = self.home.send(self.place);
    }
}

/// The buffer, the free parts of it, and the shared meshes.
#[derive(Resource)]
pub(super) struct QuadMemory {
    /// Each with the number of its first quad.
    arenas: Vec<(u32, Allocator)>,
    capacity: u32,
    most: u32,
    gpu: Option<(RenderDevice, RenderQueue)>,
    buffer: Option<Buffer>,
    frame: u64,
    /// What dropped ranges send, and where they come from.
    returned: (Sender<Place>, Receiver<Place>),
    /// Places that can be used again from a frame on.
    freed: VecDeque<(u64, Place)>,
    meshes: HashMap<u32, Handle<Mesh>>,
    is_full: bool,
}

impl QuadMemory {
    /// Without a graphics card the memory only counts.
    pub fn new(gpu: Option<(RenderDevice, RenderQueue)>) -> Self {
        let bytes = gpu.as_ref().map_or(u64::MAX, |(device, _)| {
            let limits = device.limits();
            limits.max_buffer_size.min(limits.max_storage_buffer_binding_size)
        });
        let mut memory = Self {
            arenas: Vec::new(),
            capacity: 0,
            most: quads_in(bytes),
            gpu,
            buffer: None,
            frame: 0,
            returned: unbounded(),
            freed: default(),
            meshes: default(),
            is_full: false,
        };
        memory.grow();
        memory
    }

    /// The buffer. It is replaced when it grows.
    pub fn buffer(&self) -> Option<&Buffer> {
        self.buffer.as_ref()
    }

    /// The size of the buffer.
    pub fn bytes(&self) -> u64 {
        u64::from(self.capacity) * QUAD_BYTES
    }

    /// Writes quads to a free range. Returns `None`, and logs it once, if the graphics card has no room.
    pub fn store(&mut self, quads: &[Quad]) -> Option<QuadRange> {
        let size = size_class(u32::try_from(quads.len()).ok()?);
        let range = self.allocate(size);
        let Some(range) = range else {
            if !mem::replace(&mut self.is_full, true) {
                error!(
                    "the graphics card has room for {} quads of chunks, and these are used: some chunks are not drawn",
                    self.capacity
                );
            }
            return None;
        };
        // Quads beyond the last one are empty.
        let mut padded = quads.to_vec();
        padded.resize(range.size as usize, [0; 4]);
        self.overwrite(range.first, &padded);
        Some(range)
    }

    /// Replaces quads from a place on. A frame that is being drawn may show either.
    pub fn overwrite(&self, first: u32, quads: &[Quad]) {
        if let (Some((_, queue)), Some(buffer)) = (&self.gpu, &self.buffer) {
            queue.write_buffer(buffer, u64::from(first) * QUAD_BYTES, bytemuck::cast_slice(quads));
        }
    }

    fn allocate(&mut self, size: u32) -> Option<QuadRange> {
        loop {
            for (arena, (start, allocator)) in self.arenas.iter_mut().enumerate().rev() {
                if let Some(allocation) = allocator.allocate(size) {
                    let (first, home) = (*start + allocation.offset, self.returned.0.clone());
                    return Some(QuadRange { first, size, place: (arena, allocation), home });
                }
            }
            if !self.grow() {
                return None;
            }
        }
    }

    /// Begins a frame: ranges that were dropped some frames ago can be used again.
    pub fn next_frame(&mut self) {
        self.frame += 1;
        let from = self.frame + FRAMES;
        self.freed.extend(self.returned.1.try_iter().map(|place| (from, place)));
        while let Some((_, (arena, allocation))) = self.freed.pop_front_if(|(frame, _)| *frame <= self.frame) {
            self.arenas[arena].1.free(allocation);
            self.is_full = false;
        }
    }

    /// Adds an arena. Returns `false` if the graphics card cannot have a larger buffer.
    fn grow(&mut self) -> bool {
        let more = self.capacity.max(FIRST_ARENA).min(self.most - self.capacity);
        if more == 0 {
            return false;
        }
        self.arenas.push((self.capacity, Allocator::with_max_allocs(more, MESHES.min(more))));
        self.capacity += more;
        let Some((device, queue)) = &self.gpu else { return true };
        let buffer = device.create_buffer(&BufferDescriptor {
            label: Some("chunk quads"),
            size: u64::from(self.capacity) * QUAD_BYTES,
            usage: BufferUsages::STORAGE | BufferUsages::COPY_DST | BufferUsages::COPY_SRC,
            mapped_at_creation: false,
        });
        if let Some(old) = &self.buffer {
            let mut encoder =
                device.create_command_encoder(&CommandEncoderDescriptor { label: Some("chunk quads grow") });
            encoder.copy_buffer_to_buffer(old, 0, &buffer, 0, old.size());
            queue.submit([encoder.finish()]);
        }
        self.buffer = Some(buffer);
        true
    }

    /// The shared mesh of a range.
    pub fn mesh(&mut self, range: &QuadRange, meshes: &mut Assets<Mesh>) -> Handle<Mesh> {
        self.meshes.entry(range.size).or_insert_with(|| meshes.add(corners(range.size))).clone()
    }
}

/// The number of quads that a buffer of this size has room for. The numbers of their corners are 32 bits wide.
fn quads_in(bytes: u64) -> u32 {
    (bytes / QUAD_BYTES).min(u64::from(u32::MAX / 4)) as u32
}

/// The number of quads rounded up to at most an eighth more: 8 sizes between powers of two.
fn size_class(quads: u32) -> u32 {
    let quads = quads.max(1);
    let step = (quads.next_power_of_two() / 16).max(1);
    quads.next_multiple_of(step)
}

/// A mesh that counts corners.
fn corners(quads: u32) -> Mesh {
    let triangles = (0..quads).flat_map(|quad| [0, 1, 2, 0, 2, 3].map(|corner| quad * 4 + corner));
    let indices = match u16::try_from(quads * 4) {
        Ok(_) => Indices::U16(triangles.map(|corner| corner as u16).collect()),
        Err(_) => Indices::U32(triangles.collect()),
    };
    Mesh::new(PrimitiveTopology::TriangleList, RenderAssetUsages::RENDER_WORLD)
        .with_inserted_attribute(CORNER, (0..quads * 4).collect::<Vec<u32>>())
        // Not read: without normals Bevy would warn of each prepass.
        .with_inserted_attribute(Mesh::ATTRIBUTE_NORMAL, vec![[0.0; 3]; quads as usize * 4])
        .with_inserted_indices(indices)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Graphics cards report limits of 4 GiB and more.
    #[test]
    fn a_large_buffer_has_room_for_many_quads() {
        assert_eq!([0, 15, 16, 128 << 20].map(quads_in), [0, 0, 1, 8 << 20]);
        assert_eq!(
            [4 << 30, 1 << 34, 1 << 40, u64::MAX].map(quads_in),
            [1 << 28, (1 << 30) - 1, (1 << 30) - 1, (1 << 30) - 1]
        );
    }

    #[test]
    fn sizes_are_few_and_waste_at_most_an_eighth() {
        let mut sizes = std::collections::BTreeSet::new();
        for quads in 1..20_000 {
            let size = size_class(quads);
            assert!(size >= quads && size - quads <= quads / 8, "{quads}: {size}");
            assert_eq!(size_class(size), size);
            sizes.insert(size);
        }
        assert!(sizes.len() < 110, "{}", sizes.len());
    }

    #[test]
    fn dropped_ranges_are_used_again() {
        let mut memory = QuadMemory::new(None);
        for _ in 0..20 {
            let ranges: Vec<_> = (0..10).map(|_| memory.store(&vec![[1; 4]; 4_000]).unwrap()).collect();
            drop(ranges);
            (0..=FRAMES).for_each(|_| memory.next_frame());
        }
        assert_eq!(memory.capacity, FIRST_ARENA);
    }

    proptest! {
        /// Ranges in use never overlap, and a freed range is not used again while it may be drawn.
        #[test]
        fn ranges_are_apart(steps in prop::collection::vec((0u32..3, 1usize..5_000), 1..200)) {
            let mut memory = QuadMemory::new(None);
            let mut used: Vec<QuadRange> = Vec::new();
            let mut freed: Vec<(u64, std::ops::Range<u32>)> = Vec::new();
            for (step, number) in steps {
                match step {
                    0 => memory.next_frame(),
                    1 if !used.is_empty() => {
                        let range = used.swap_remove(number % used.len());
                        freed.push((memory.frame, range.first..range.first + range.size));
                        drop(range);
                    }
                    _ => {
                        let range = memory.store(&vec![[1; 4]; number]).unwrap();
                        let own = range.first..range.first + range.size;
                        let overlaps = |other: &std::ops::Range<u32>| own.start < other.end && other.start < own.end;
                        prop_assert!(own.len() >= number && own.end <= memory.capacity);
                        prop_assert!(!used.iter().any(|range| overlaps(&(range.first..range.first + range.size))));
                        let frame = memory.frame;
                        prop_assert!(!freed.iter().any(|(freed, other)| frame < freed + FRAMES && overlaps(other)));
                        used.push(range);
                    }
                }
            }
        }
    }
}
