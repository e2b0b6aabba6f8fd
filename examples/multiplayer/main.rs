//! A multiplayer game: players see each other walk, dig, build and chat, leave, and come back.
//!
//! `cargo run --example multiplayer --features multiplayer` starts a server, Bob, who plays by himself (`bob.rs`), and a window for Ada.
//! With `-- serve 0.0.0.0:5700` it is only a server, and with `-- join 127.0.0.1:5700 Cid` only Cid's window.

mod bob;

use bevy::app::ScheduleRunnerPlugin;
use bevy_egui::{EguiContexts, EguiPlugin, EguiPrimaryContextPass, egui};
use bevy_terrane::prelude::*;
use bevy_terrane::view::PlayerLoggedIn;
use serde::{Deserialize, Serialize};
use std::{env, time::Duration};
use terrane_dev::{DevPlugins, FirstPerson, SkyPlugin};
use terrane_net::{
    ClientPlugin, ConnectedClient, ConnectionNews, FromAClient, FromTheServer, Identity, NetAppExt, NetServer,
    ServerConnection, ServerPlugin, ToClients, ToTheServer, Trust,
};
use terrane_render::ChunkRenderPlugin;

/// The folder of the world, the server's certificate, and the clients' caches.
const FOLDER: &str = "target/examples/multiplayer";

fn main() -> Result<AppExit> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    match &arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["serve", address] => Ok(server(address)?.run()),
        ["join", address, name] => Ok(client(address, name, DevPlugins::named("multiplayer")).run()),
        _ => bob::play(DevPlugins::new("multiplayer")),
    }
}

/// Both sides register the same actions, components and messages.
fn register(app: &mut App) {
    app.register_action::<SetBlock>().replicate_region_component::<Intent>().register_net_message::<Say>();
}

/// A line of the chat. On its way to the server it has no name yet.
#[derive(Serialize, Deserialize, TypePath, Clone)]
struct Say {
    name: String,
    text: String,
}

fn server(address: &str) -> Result<App> {
    let land = Hills::seeded(12);
    let first_place = BlockPos::new(96, land.height_at(96, 88) + 1, 88);
    let net = ServerPlugin::new(address.parse::<std::net::SocketAddr>()?, "overworld", first_place);
    let identity = Identity::in_file(format!("{FOLDER}/identity.pem"))?;
    let frames = ScheduleRunnerPlugin::run_loop(Duration::from_millis(25));
    let mut app = App::new();
    app.add_plugins((MinimalPlugins.set(frames), TerranePlugin::at(format!("{FOLDER}/world")), BodyPlugin))
        .add_plugins(net.with_identity(identity))
        .add_systems(Update, (give_bodies, pass_on));
    register(&mut app);
    app.world_mut().spawn((Dimension::new("overworld", land), TimeOfDay::default()));
    let listening = app.world().get_resource::<NetServer>().ok_or("the server cannot listen")?;
    println!("listening at {}, as {}", listening.address(), listening.fingerprint());
    Ok(app)
}

/// Players have bodies, which their clients steer.
fn give_bodies(mut logged_in: MessageReader<PlayerLoggedIn>, mut commands: Commands) {
    for player in logged_in.read() {
        let body = (BlockBody::new(0.6, 1.8), CharacterController::default());
        let give = move |mut player: EntityWorldMut| _ = player.insert_if_new(body);
        commands.run_on_region_entity(player.id, 0, give, |_, _| {});
    }
}

/// Everybody reads what somebody says, under the name with which it logged in.
fn pass_on(
    mut said: MessageReader<FromAClient<Say>>,
    clients: Query<&ConnectedClient>,
    mut all: MessageWriter<ToClients<Say>>,
) {
    for FromAClient { client, message } in said.read() {
        let Ok(client) = clients.get(*client) else { continue };
        let message = Say { name: client.name().to_owned(), text: message.text.chars().take(200).collect() };
        all.write(ToClients { client: None, message });
    }
}

/// A client with a window.
fn client(address: &str, name: &str, window: DevPlugins) -> App {
    let mut app = App::new();
    app.add_plugins((window, SkyPlugin::default(), EguiPlugin::default()))
        .add_plugins((TerranePlugin::in_memory(), ChunkRenderPlugin::default(), BodyPlugin, ClientPlugin))
        .init_resource::<Chat>()
        .add_systems(Update, (dig, give_looks, hear))
        .add_systems(EguiPrimaryContextPass, show_chat);
    register(&mut app);
    app.world_mut().spawn((FirstPerson::default(), connect(address, name)));
    app
}

/// The player of this name. It needs no other entity: it has a camera, the ground around it, and what others do there.
fn connect(address: &str, name: &str) -> ServerConnection {
    let trust = Trust::FirstUse(format!("{FOLDER}/known_servers").into());
    ServerConnection::new(address, name, trust).with_caches(format!("{FOLDER}/{name}"), 256 << 20)
}

/// The left button digs, and the right one builds.
fn dig(
    mouse: Res<ButtonInput<MouseButton>>,
    player: Single<(&FirstPerson, &Position, &Intent)>,
    (blocks, types): (PublishedBlocks, Res<BlockTypes>),
    mut edits: MessageWriter<SetBlock>,
) {
    let (person, body, intent) = *player;
    let (eyes, look) = (person.eyes(body), intent.rotation() * Vec3::NEG_Z);
    let Some(hit) = blocks.cast_ray(eyes, look, 6.0, |block| block != BlockId::AIR) else { return };
    if mouse.just_pressed(MouseButton::Left) && person.takes_input {
        edits.write(SetBlock { dimension: body.dimension, position: hit.block, block: BlockId::AIR });
    } else if mouse.just_pressed(MouseButton::Right) && person.takes_input {
        let block = types.id("terrane:stone").unwrap_or_default();
        edits.write(SetBlock { dimension: body.dimension, position: hit.before(), block });
    }
}

/// Other players are seen, each in a color of its own.
fn give_looks(
    new: Query<(Entity, &Mirror, &Player), Added<Player>>,
    own: Single<&ServerConnection>,
    mut commands: Commands,
    (mut meshes, mut materials): (ResMut<Assets<Mesh>>, ResMut<Assets<StandardMaterial>>),
) {
    for (entity, _, player) in new.iter().filter(|(_, mirror, _)| own.player() != Some(mirror.id)) {
        let hue = player.name().bytes().fold(0, |hue, byte| (31 * hue + u32::from(byte)) % 360);
        let color = Color::hsl(hue as f32, 0.7, 0.5);
        let mut looks = commands.entity(entity);
        looks.insert((Transform::default(), Visibility::default()));
        for (height, size, color) in [(0.7, Vec3::new(0.6, 1.4, 0.4), color), (1.6, Vec3::splat(0.4), Color::WHITE)] {
            let (mesh, material) = (meshes.add(Cuboid::from_size(size)), materials.add(color));
            looks.with_child((Mesh3d(mesh), MeshMaterial3d(material), Transform::from_xyz(0.0, height, 0.0)));
        }
    }
}

/// What was said lately, and what is being typed.
#[derive(Resource, Default)]
struct Chat {
    lines: Vec<String>,
    typed: String,
}

fn hear(mut chat: ResMut<Chat>, mut said: MessageReader<FromTheServer<Say>>, mut news: MessageReader<ConnectionNews>) {
    chat.lines.extend(said.read().map(|FromTheServer(Say { name, text })| format!("{name}: {text}")));
    chat.lines.extend(news.read().map(ToString::to_string));
    let old = chat.lines.len().saturating_sub(8);
    chat.lines.drain(..old);
}

/// A click into the line lets the player type, and Enter sends it.
fn show_chat(
    mut contexts: EguiContexts,
    mut chat: ResMut<Chat>,
    mut person: Single<&mut FirstPerson>,
    mut say: MessageWriter<ToTheServer<Say>>,
) -> Result {
    let frame = egui::Window::new("chat").anchor(egui::Align2::LEFT_BOTTOM, [12.0, -12.0]).resizable(false);
    frame.show(contexts.ctx_mut()?, |ui| {
        chat.lines.iter().for_each(|line| drop(ui.label(line)));
        let line = ui.text_edit_singleline(&mut chat.typed);
        person.takes_input = !line.has_focus();
        if line.lost_focus() && ui.input(|input| input.key_pressed(egui::Key::Enter)) && !chat.typed.is_empty() {
            let text = std::mem::take(&mut chat.typed);
            say.write(ToTheServer(Say { name: String::new(), text }));
        }
    });
    Ok(())
}
