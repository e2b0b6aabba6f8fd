use bevy::prelude::*;
#[derive(Default)] pub struct ChunkRenderPlugin; impl Plugin for ChunkRenderPlugin { fn build(&self, app:&mut App){app.init_resource::<MeshProgress>();} }
#[derive(Default)] pub struct OverlayPlugin; impl Plugin for OverlayPlugin { fn build(&self, app:&mut App){app.init_resource::<Overlay>().add_plugins(bevy_egui::EguiPlugin::default());} }
#[derive(Resource, Default)] pub struct MeshProgress{pub queued:usize,pub in_flight:usize}
#[derive(Resource, Default)] pub struct Overlay{pub visible:bool}
