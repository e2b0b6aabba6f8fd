// Wet blocks: darker, and smooth enough to reflect the sun. An extension of the chunks' material, for the example `blocks`.

#import bevy_pbr::{forward_io::FragmentOutput, pbr_functions}
#import terrane_render::chunk_fragment::{VertexOutput, pbr_input}

/// 0 for dry blocks, 1 for wet ones.
@group(#{MATERIAL_BIND_GROUP}) @binding(110) var<uniform> wetness: f32;

@fragment
fn fragment(in: VertexOutput) -> FragmentOutput {
    var input = pbr_input(in);
    // Rain comes from above.
    let wet = wetness * max(input.N.y, 0.4);
    let color = input.material.base_color;
    input.material.base_color = pbr_functions::alpha_discard(input.material, vec4(color.rgb * (1.0 - 0.5 * wet), color.a));
    input.material.perceptual_roughness = mix(input.material.perceptual_roughness, 0.25, wet);
    var out: FragmentOutput;
    out.color = pbr_functions::main_pass_post_lighting_processing(input, pbr_functions::apply_pbr_lighting(input));
    return out;
}
