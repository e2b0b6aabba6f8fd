// A `StandardMaterial` in the light of its place. `lit_material.rs` writes the tag.

#import bevy_pbr::{
    forward_io::{VertexOutput, FragmentOutput},
    mesh_functions,
    pbr_fragment::pbr_input_from_standard_material,
    pbr_functions,
    pbr_types,
}
#import terrane_render::light::{BLOCK_LIGHT, DARKNESS}

/// A little shade of the sides, as that of blocks, so that shapes are visible out of the sun too.
fn side_light(normal: vec3<f32>) -> f32 {
    let height = select(0.65, 1.0, normal.y > 0.0);
    return dot(normal * normal, vec3(0.9, height, 0.82));
}

@fragment
fn fragment(in: VertexOutput, @builtin(front_facing) is_front: bool) -> FragmentOutput {
    var input = pbr_input_from_standard_material(in, is_front);
    input.material.base_color = pbr_functions::alpha_discard(input.material, input.material.base_color);
    var out: FragmentOutput;
    if (input.material.flags & pbr_types::STANDARD_MATERIAL_FLAGS_UNLIT_BIT) == 0u {
        let tag = mesh_functions::get_tag(in.instance_index);
        let light = vec2<f32>(vec2(tag, tag >> 8u) & vec2(255u)) / 255.0;
        let color = input.material.base_color;
        // The game's lights reach it as far as the light of the sky does.
        input.material.base_color = vec4(color.rgb * light.x, color.a);
        out.color = pbr_functions::apply_pbr_lighting(input);
        let own = color.rgb * (BLOCK_LIGHT * light.y + DARKNESS) * side_light(input.world_normal);
        out.color = vec4(out.color.rgb + own, out.color.a);
    } else {
        out.color = input.material.base_color;
    }
    out.color = pbr_functions::main_pass_post_lighting_processing(input, out.color);
    return out;
}
