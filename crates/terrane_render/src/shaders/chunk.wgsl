// Quads of chunks: unpacked from the storage buffer, and colored by the textures of their looks. `quads.rs` has the packing.

#define_import_path terrane_render::chunk

#import terrane_render::light::{BLOCK_LIGHT, DARKNESS}
#import bevy_pbr::mesh_view_bindings::view
#ifdef PREPASS_PIPELINE
#import bevy_render::globals::Globals
#else
#import bevy_pbr::mesh_view_bindings::globals
#endif

/// The look of a face, as `table.rs` writes it.
struct FaceLook {
    /// Linear.
    tint: vec3<f32>,
    layer: u32,
    overlay_tint: vec3<f32>,
    /// The layer of the overlay, or NO_OVERLAY.
    overlay: u32,
    frames: u32,
    seconds_per_frame: f32,
    flags: u32,
    /// The part of the color that shines by itself.
    emission: f32,
}

const NO_OVERLAY: u32 = 0xffffffffu;
/// Each block turns the texture by a number of quarters of its own.
const RANDOM_TURN: u32 = 1u;

/// Faces reach so many pixels beyond each of their edges. Graphics cards round the places of corners, the coarsest by up to 1/32
/// pixel. Where a corner lies on the edge of a larger face, single pixels could be seen through between the two.
const OVERLAP: f32 = 0.0625;
/// No corner is moved farther than this along an edge, in pixels. In faces that are seen nearly edge-on, it would.
const FARTHEST: f32 = 0.5;

#ifdef PREPASS_PIPELINE
@group(0) @binding(1) var<uniform> globals: Globals;
#endif
@group(#{MATERIAL_BIND_GROUP}) @binding(100) var<storage, read> quads: array<vec4<u32>>;
@group(#{MATERIAL_BIND_GROUP}) @binding(101) var<storage, read> faces: array<FaceLook>;
@group(#{MATERIAL_BIND_GROUP}) @binding(102) var textures: texture_2d_array<f32>;
@group(#{MATERIAL_BIND_GROUP}) @binding(103) var textures_sampler: sampler;
/// x: 1 by day and 0 at night.
@group(#{MATERIAL_BIND_GROUP}) @binding(104) var<uniform> daylight: vec4<f32>;

/// A corner of a quad.
struct Corner {
    /// In blocks, from the origin of the mesh.
    position: vec3<f32>,
    /// The directions of the two edges that meet here, away from the face.
    outwards: array<vec3<f32>, 2>,
    normal: vec3<f32>,
    /// In blocks: textures repeat.
    uv: vec2<f32>,
    /// The light of the corner: baked shade of the side, and of the blocks around it.
    shade: f32,
    /// Sky light and block light, 0 to 1.
    light: vec2<f32>,
    /// The number of the look, and in the higher half the salt that its turns depend on.
    look: u32,
}

/// The corner that a vertex stands for. `first` is the mesh's first quad, from its tag.
fn corner_of(first: u32, vertex: u32) -> Corner {
    let quad = quads[first + vertex / 4u];
    let side = (quad.x >> 27u) & 7u;
    let at = vec3<f32>(vec3(quad.x, quad.x >> 9u, quad.x >> 18u) & vec3(511u));
    let size = vec2<f32>(vec2(quad.y, quad.y >> 9u) & vec2(511u));
    let openness = vec4(quad.y >> 18u, quad.y >> 20u, quad.y >> 22u, quad.y >> 24u) & vec4(3u);

    // A quad is divided along the brighter diagonal, so that a dark corner stays a corner.
    let mirrored = side >= 2u && side <= 4u;
    let levels = vec4(quad.w, quad.w >> 8u, quad.w >> 16u, quad.w >> 24u) & vec4(255u);
    let brightness = 5u * openness + max(levels & vec4(15u), levels >> vec4(4u));
    let along_first_diagonal = brightness.x + brightness.w >= brightness.y + brightness.z;
    let ring = (vertex + u32(along_first_diagonal == mirrored)) & 3u;
    // The corners in their order around the quad: lowest, along the width, both, along the height.
    var corner = vec2(u32(ring == 1u || ring == 2u), ring >> 1u);
    if mirrored {
        corner.x = 1u - corner.x;
    }
    let number = corner.x + 2u * corner.y;
    let along = vec2<f32>(corner) * size;
    let drop = f32((quad.z >> (16u + 4u * number)) & 15u);

    var out: Corner;
    out.look = (quad.z & 0xffffu) | (quad.x >> 30u) << 16u | (quad.y >> 26u) << 18u;
    out.shade = corner_light(openness[number]) * side_light(side);
    out.light = vec2<f32>(vec2(levels[number] & 15u, levels[number] >> 4u)) / 15.0;
    var along_width = vec3(1.0, 0.0, 0.0);
    var along_height = vec3(0.0, 1.0, 0.0);
    switch side {
        case 0u, 3u: { along_width = vec3(0.0, 0.0, 1.0); }
        case 1u, 4u: { along_height = vec3(0.0, 0.0, 1.0); }
        case 6u: { along_width.z = 1.0; }
        case 7u: { along_width.z = -1.0; }
        default: {}
    }
    out.position = at + along_width * along.x + along_height * along.y;
    if side == 7u {
        out.position.z += size.x;
    }
    out.position.y -= drop;
    out.position /= 16.0;
    let ways = 2.0 * vec2<f32>(corner) - 1.0;
    out.outwards = array(along_width * ways.x, along_height * ways.y);
    let p = out.position;
    switch side {
        case 0u: { out.normal = vec3(-1.0, 0.0, 0.0); out.uv = vec2(p.z, -p.y); }
        case 1u: { out.normal = vec3(0.0, -1.0, 0.0); out.uv = vec2(p.x, -p.z); }
        case 2u: { out.normal = vec3(0.0, 0.0, -1.0); out.uv = vec2(-p.x, -p.y); }
        case 3u: { out.normal = vec3(1.0, 0.0, 0.0); out.uv = vec2(-p.z, -p.y); }
        case 4u: { out.normal = vec3(0.0, 1.0, 0.0); out.uv = vec2(p.x, p.z); }
        case 5u: { out.normal = vec3(0.0, 0.0, 1.0); out.uv = vec2(p.x, -p.y); }
        // Plants are lit like the ground that they stand on.
        default: { out.normal = vec3(0.0, 1.0, 0.0); out.uv = vec2(p.x, -p.y); }
    }
    return out;
}

/// The place of a corner on the screen. `world` is its position. What is computed relative to the camera is exact far from the
/// origin too.
fn clip_from_corner(corner: Corner, world: vec3<f32>) -> vec4<f32> {
    let clip = view.clip_from_world * vec4(world - view.world_position, 0.0) + view.clip_from_view[3];
#ifdef OVERLAPPING
    // By the chain rule, the pixels per block along both edges are those divided by the square of `clip.w`. Chunks are not turned. In a
    // turned block the corner is moved in another direction, but not visibly.
    let edges = array(view.clip_from_world * vec4(corner.outwards[0], 0.0), view.clip_from_world * vec4(corner.outwards[1], 0.0));
    let first = (edges[0].xy * clip.w - clip.xy * edges[0].w) * view.viewport.zw * 0.5;
    let second = (edges[1].xy * clip.w - clip.xy * edges[1].w) * view.viewport.zw * 0.5;
    let lengths = vec2(length(first), length(second));
    // Each edge is moved by the overlap across itself: the less the other edge leads across, the farther along that.
    let across = max(abs(first.x * second.y - first.y * second.x), lengths.x * lengths.y * (OVERLAP / FARTHEST));
    // Behind the camera the face is upside down, and so is the way.
    let scale = OVERLAP * clip.w * abs(clip.w) / max(across, 1e-20);
    return clip + (edges[0] * lengths.y + edges[1] * lengths.x) * scale;
#else
    return clip;
#endif
}

/// By the openness of a corner: 0 between two walls, 3 in the open.
fn corner_light(openness: u32) -> f32 {
    switch openness {
        case 0u: { return 0.5; }
        case 1u: { return 0.68; }
        case 2u: { return 0.84; }
        default: { return 1.0; }
    }
}

/// A little shade of the sides is baked, so that shapes are visible out of the sun too.
fn side_light(side: u32) -> f32 {
    switch side {
        case 1u: { return 0.65; }
        case 0u, 3u: { return 0.9; }
        case 2u, 5u: { return 0.82; }
        default: { return 1.0; }
    }
}

/// The part of the light of blocks that full daylight outshines.
const OUTSHONE: f32 = 0.85;

/// The brightness of a level of light, both 0 to 1. The levels are steps of nearly the same size to the eye.
fn brightness(level: f32) -> f32 {
    return level / (4.0 - 3.0 * level);
}

/// What a face with sky light and block light has beside the lights of the game: the light of blocks.
fn block_light(light: vec2<f32>) -> vec3<f32> {
    let outshone = OUTSHONE * brightness(light.x) * daylight.x;
    return BLOCK_LIGHT * brightness(light.y) * (1.0 - outshone) + DARKNESS;
}

/// The look with the number of a corner.
fn face_look(look: u32) -> FaceLook {
    return faces[look & 0xffffu];
}

/// The color of a face at a place, without light. `position` is in blocks, from the origin of the mesh.
fn face_color(look: u32, position: vec3<f32>, normal: vec3<f32>, place: vec2<f32>) -> vec4<f32> {
    let face = face_look(look);
    var uv = place;
    var dx = dpdx(uv);
    var dy = dpdy(uv);
    if (face.flags & RANDOM_TURN) != 0u {
        let quarters = turn_of(vec3<u32>(vec3<i32>(floor(position - normal * 0.5))), look >> 16u);
        uv = turned(fract(uv) - 0.5, quarters) + 0.5;
        dx = turned(dx, quarters);
        dy = turned(dy, quarters);
    }
    var layer = face.layer;
    if face.frames > 1u {
        layer += u32(globals.time / face.seconds_per_frame) % face.frames;
    }
    var color = textureSampleGrad(textures, textures_sampler, uv, layer, dx, dy);
    color = vec4(color.rgb * face.tint, color.a);
    if face.overlay != NO_OVERLAY {
        let over = textureSampleGrad(textures, textures_sampler, uv, face.overlay, dx, dy);
        color = vec4(mix(color.rgb, over.rgb * face.overlay_tint, over.a), max(color.a, over.a));
    }
    return color;
}

/// The quarter turns of a block's textures, by its place in the chunk and the chunk's salt, with the hash PCG (Jarzynski and Olano,
/// "Hash Functions for GPU Rendering", 2020).
fn turn_of(block: vec3<u32>, salt: u32) -> u32 {
    let place = block & vec3(15u);
    let state = (place.x | place.y << 4u | place.z << 8u | salt << 12u) * 747796405u + 2891336453u;
    let word = ((state >> ((state >> 28u) + 4u)) ^ state) * 277803737u;
    return ((word >> 22u) ^ word) >> 30u;
}

fn turned(at: vec2<f32>, quarters: u32) -> vec2<f32> {
    switch quarters {
        case 1u: { return vec2(-at.y, at.x); }
        case 2u: { return -at; }
        case 3u: { return vec2(at.y, -at.x); }
        default: { return at; }
    }
}
