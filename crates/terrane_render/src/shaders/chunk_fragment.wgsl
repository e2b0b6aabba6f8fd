// The fragment stage's side of chunks, for the main pass and for a game's own extension of the material.

#define_import_path terrane_render::chunk_fragment

#import bevy_pbr::{
    mesh_bindings::mesh,
    mesh_view_bindings::view,
    pbr_bindings::material,
    pbr_functions,
    pbr_types,
}
#import terrane_render::chunk

struct VertexOutput {
    @builtin(position) position: vec4<f32>,
    @location(0) world_position: vec4<f32>,
    @location(1) world_normal: vec3<f32>,
    /// In blocks, from the origin of the mesh.
    @location(2) local_position: vec3<f32>,
    @location(3) uv: vec2<f32>,
    @location(4) shade: f32,
    @location(5) @interpolate(flat) local_normal: vec3<f32>,
    /// The number of the look, and in the higher half what its turns depend on.
    @location(6) @interpolate(flat) look: u32,
    @location(7) @interpolate(flat) instance_index: u32,
    /// Sky light and block light, 0 to 1.
    @location(8) light: vec2<f32>,
}

/// What `apply_pbr_lighting` needs, with the texture's color.
fn pbr_input(in: VertexOutput) -> pbr_types::PbrInput {
    var input = pbr_types::pbr_input_new();
    input.flags = mesh[in.instance_index].flags;
    input.is_orthographic = view.clip_from_view[3].w == 1.0;
    input.V = pbr_functions::calculate_view(in.world_position, input.is_orthographic);
    input.frag_coord = in.position;
    input.world_position = in.world_position;
    input.world_normal = normalize(in.world_normal);
    input.N = input.world_normal;
    input.material.flags = material.flags;
    input.material.perceptual_roughness = material.perceptual_roughness;
    input.material.metallic = material.metallic;
    input.material.reflectance = material.reflectance;
    input.material.alpha_cutoff = material.alpha_cutoff;
    let color = chunk::face_color(in.look, in.local_position, in.local_normal, in.uv) * material.base_color;
    let emission = chunk::face_look(in.look).emission;
    let shaded = color.rgb * in.shade * (1.0 - emission);
    // The game's lights reach a face as far as the light of the sky does.
    input.material.base_color = vec4(shaded * chunk::brightness(in.light.x), color.a);
    // Without a light of its own a face that shines has its texture's color, as bright as a sunlit one.
    input.material.emissive =
        vec4(color.rgb * emission * material.emissive.rgb + shaded * chunk::block_light(in.light), 0.0);
    return input;
}
