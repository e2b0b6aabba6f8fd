// What chunks and lit meshes have in common.

#define_import_path terrane_render::light

/// The color of the light of blocks.
const BLOCK_LIGHT: vec3<f32> = vec3<f32>(1.7, 1.25, 0.78);
/// The part of a face's color that is visible in full darkness.
const DARKNESS: f32 = 0.006;
