// Depth, shadows, normals and motion vectors of chunks.

#import bevy_pbr::{
    mesh_functions,
    mesh_view_bindings::view,
    prepass_bindings,
    pbr_bindings::material,
}
#import terrane_render::chunk

struct VertexOutput {
    @builtin(position) position: vec4<f32>,
    @location(0) world_position: vec4<f32>,
    @location(1) world_normal: vec3<f32>,
    @location(2) local_position: vec3<f32>,
    @location(3) uv: vec2<f32>,
    @location(4) @interpolate(flat) local_normal: vec3<f32>,
    @location(5) @interpolate(flat) look: u32,
#ifdef MOTION_VECTOR_PREPASS
    @location(6) previous_world_position: vec4<f32>,
#endif
#ifdef UNCLIPPED_DEPTH_ORTHO_EMULATION
    @location(7) unclipped_depth: f32,
#endif
}

@vertex
fn vertex(@builtin(instance_index) instance_index: u32, @location(0) vertex: u32) -> VertexOutput {
    let corner = chunk::corner_of(mesh_functions::get_tag(instance_index), vertex);
    let world_from_local = mesh_functions::get_world_from_local(instance_index);
    var out: VertexOutput;
    out.world_position = mesh_functions::mesh_position_local_to_world(world_from_local, vec4(corner.position, 1.0));
    out.position = chunk::clip_from_corner(corner, out.world_position.xyz);
#ifdef UNCLIPPED_DEPTH_ORTHO_EMULATION
    out.unclipped_depth = out.position.z;
    out.position.z = min(out.position.z, 1.0);
#endif
    out.world_normal = mesh_functions::mesh_normal_local_to_world(corner.normal, instance_index);
    out.local_position = corner.position;
    out.uv = corner.uv;
    out.local_normal = corner.normal;
    out.look = corner.look;
#ifdef MOTION_VECTOR_PREPASS
    let previous = mesh_functions::get_previous_world_from_local(instance_index);
    out.previous_world_position = mesh_functions::mesh_position_local_to_world(previous, vec4(corner.position, 1.0));
#endif
    return out;
}

fn discard_holes(in: VertexOutput) {
#ifdef MAY_DISCARD
    let color = chunk::face_color(in.look, in.local_position, in.local_normal, in.uv) * material.base_color;
    if color.a < material.alpha_cutoff {
        discard;
    }
#endif
}

#ifdef PREPASS_FRAGMENT
struct FragmentOutput {
#ifdef NORMAL_PREPASS
    @location(0) normal: vec4<f32>,
#endif
#ifdef MOTION_VECTOR_PREPASS
    @location(1) motion_vector: vec2<f32>,
#endif
#ifdef UNCLIPPED_DEPTH_ORTHO_EMULATION
    @builtin(frag_depth) frag_depth: f32,
#endif
}

@fragment
fn fragment(in: VertexOutput) -> FragmentOutput {
    discard_holes(in);
    var out: FragmentOutput;
#ifdef NORMAL_PREPASS
    out.normal = vec4(normalize(in.world_normal) * 0.5 + vec3(0.5), 1.0);
#endif
#ifdef UNCLIPPED_DEPTH_ORTHO_EMULATION
    out.frag_depth = in.unclipped_depth;
#endif
#ifdef MOTION_VECTOR_PREPASS
    let now = view.unjittered_clip_from_world * in.world_position;
    let before = prepass_bindings::previous_view_uniforms.clip_from_world * in.previous_world_position;
    out.motion_vector = (now.xy / now.w - before.xy / before.w) * vec2(0.5, -0.5);
#endif
    return out;
}
#else
@fragment
fn fragment(in: VertexOutput) {
    discard_holes(in);
}
#endif
