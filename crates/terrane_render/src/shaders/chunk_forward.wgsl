// The main pass of chunks.

#import bevy_pbr::{
    mesh_functions,
    forward_io::FragmentOutput,
    pbr_functions,
    pbr_types,
}
#import terrane_render::{chunk, chunk_fragment::{VertexOutput, pbr_input}}

@vertex
fn vertex(@builtin(instance_index) instance_index: u32, @location(0) vertex: u32) -> VertexOutput {
    let corner = chunk::corner_of(mesh_functions::get_tag(instance_index), vertex);
    let world_from_local = mesh_functions::get_world_from_local(instance_index);
    var out: VertexOutput;
    out.world_position = mesh_functions::mesh_position_local_to_world(world_from_local, vec4(corner.position, 1.0));
    out.position = chunk::clip_from_corner(corner, out.world_position.xyz);
    out.world_normal = mesh_functions::mesh_normal_local_to_world(corner.normal, instance_index);
    out.local_position = corner.position;
    out.uv = corner.uv;
    out.shade = corner.shade;
    out.light = corner.light;
    out.local_normal = corner.normal;
    out.look = corner.look;
    out.instance_index = instance_index;
    return out;
}

@fragment
fn fragment(in: VertexOutput) -> FragmentOutput {
    var input = pbr_input(in);
    input.material.base_color = pbr_functions::alpha_discard(input.material, input.material.base_color);
    var out: FragmentOutput;
    if (input.material.flags & pbr_types::STANDARD_MATERIAL_FLAGS_UNLIT_BIT) == 0u {
        out.color = pbr_functions::apply_pbr_lighting(input);
    } else {
        out.color = input.material.base_color;
    }
    out.color = pbr_functions::main_pass_post_lighting_processing(input, out.color);
    return out;
}
