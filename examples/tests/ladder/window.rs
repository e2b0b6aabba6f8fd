//! The example `troubles` in a window, with clicks and keys as a person makes them: Xvfb is the screen, openbox the window manager, and
//! xdotool the hand.

#[expect(dead_code, reason = "the `main` of the example")]
#[path = "../../troubles.rs"]
mod troubles;

use bevy::prelude::*;
use bevy::render::view::screenshot::{Screenshot, save_to_disk};
use bevy::winit::WinitPlugin;
use bevy_egui::egui::{Rect, Shape};
use bevy_egui::{EguiFullOutput, EguiPostUpdateSet};
use bevy_terrane::prelude::*;
use bevy_terrane::view::WorldStatistics;
use serde_json::{Value, json};
use std::env;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};
use terrane_dev::DevPlugins;
use terrane_overlay::Overlay;
use troubles::{BESS, HOLE, MEADOW, OUTPOST, SCOUT, Sheep};

/// Set in the process that is the game.
const GAME: &str = "TERRANE_WINDOW_GAME";
/// The folder of the pictures; a temporary one unless it is set.
const PICTURES: &str = "TERRANE_WINDOW_PICTURES";
/// The patience with each step.
const PATIENCE: Duration = Duration::from_secs(60);
/// The time between two reports of the game.
const PERIOD: Duration = Duration::from_millis(100);

/// The game: the example, which reports what it shows and what is, and takes pictures on demand.
#[test]
fn game() {
    if env::var_os(GAME).is_none() {
        return;
    }
    let winit = WinitPlugin { run_on_any_thread: true };
    let mut app = troubles::build(DevPlugins::named("troubles").build().set(winit));
    let mut window = app.world_mut().query::<&mut Window>();
    window.single_mut(app.world_mut()).expect("a window").resolution.set(960.0, 540.0);
    // Without a graphics card a frame with land takes twice as long, and one with shadows much longer.
    let shows_land = env::var_os(PICTURES).is_some();
    app.add_observer(move |added: On<Add, Mesh3d>, mut commands: Commands| {
        if !shows_land {
            commands.entity(added.entity).insert(Visibility::Hidden);
        }
    });
    app.add_observer(|added: On<Add, Camera3d>, mut commands: Commands| {
        commands.entity(added.entity).insert(Msaa::Off);
    });
    app.add_observer(|added: On<Add, DirectionalLight>, mut lights: Query<&mut DirectionalLight>| {
        if let Ok(mut light) = lights.get_mut(added.entity) {
            light.shadow_maps_enabled = false;
        }
    });
    app.insert_resource(Orders(Mutex::new(listen())))
        .add_systems(Update, take_pictures)
        .add_systems(PostUpdate, report.after(EguiPostUpdateSet::EndPass).before(EguiPostUpdateSet::ProcessOutput));
    app.run();
}

/// The lines of the standard input: the paths of pictures to take.
#[derive(Resource)]
struct Orders(Mutex<Receiver<String>>);

fn listen() -> Receiver<String> {
    let (sender, lines) = channel();
    thread::spawn(move || {
        std::io::stdin().lines().map_while(Result::ok).for_each(|line| drop(sender.send(line)));
    });
    lines
}

fn take_pictures(orders: Res<Orders>, mut commands: Commands) {
    for path in orders.0.lock().unwrap().try_iter() {
        commands.spawn(Screenshot::primary_window()).observe(save_to_disk(path));
    }
}

/// Prints what is on the screen and what the world is, as a line of JSON.
fn report(
    output: Query<&EguiFullOutput>,
    (overlay, statistics, dimensions): (Res<Overlay>, Res<WorldStatistics>, Res<Dimensions>),
    sheep: Query<(&Sheep, &Mirror)>,
    (time, mut due): (Res<Time<Real>>, Local<Duration>),
) {
    if time.elapsed() < *due {
        return;
    }
    *due = time.elapsed() + PERIOD;
    let mut texts = Vec::new();
    let shapes = output.iter().filter_map(|output| output.0.as_ref()).flat_map(|output| &output.shapes);
    shapes.for_each(|clipped| collect(&clipped.shape, clipped.clip_rect, &mut texts));
    let overworld = dimensions.id("overworld");
    let at = |place: BlockPos| {
        statistics.region_at(overworld, place.column()).map(|region| {
            json!({
                "region": region.region.index(), "halted": region.halted, "ticks": region.ticks,
                "columns": region.columns, "entities": region.entities, "tps": region.ticks_per_second(),
            })
        })
    };
    let wool = sheep.iter().find(|(_, mirror)| mirror.id == BESS).map(|(sheep, _)| sheep.wool);
    let line = json!({
        "texts": texts,
        "visible": overlay.visible,
        "selected": overlay.selected.map(|(_, region)| region.index()),
        "column": overlay.column.map(|(_, column)| [column.x, column.z]),
        "entity": overlay.entity.map(|id| id.to_string()),
        "meadow": at(MEADOW),
        "outpost": at(OUTPOST),
        "wool": wool,
        "failing": statistics.dimensions.iter().map(|open| open.set_aside).sum::<u64>(),
    });
    println!("{line}");
}

fn collect(shape: &Shape, clip: Rect, texts: &mut Vec<Value>) {
    match shape {
        Shape::Text(text) if clip.contains(text.visual_bounding_rect().center()) => {
            let center = text.visual_bounding_rect().center();
            texts.push(json!([text.galley.text(), center.x, center.y]));
        }
        Shape::Vec(shapes) => shapes.iter().for_each(|shape| collect(shape, clip, texts)),
        _ => {}
    }
}

/// Processes that end with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A screen of its own, and the game on it.
struct Desk {
    display: String,
    orders: ChildStdin,
    reports: Receiver<Value>,
    last: Value,
    pictures: PathBuf,
    // In this order: the game before its screen.
    _processes: Vec<Running>,
}

impl Desk {
    fn new(pictures: &Path) -> Self {
        // It chooses a free number, and says it on its standard output.
        let mut screen = Command::new("Xvfb")
            .args(["-displayfd", "1", "-screen", "0", "1100x700x24", "-nolisten", "tcp"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("Xvfb, which cargo xtask installs");
        let mut number = String::new();
        BufReader::new(screen.stdout.take().unwrap()).read_line(&mut number).unwrap();
        let display = format!(":{}", number.trim());
        assert!(display.len() > 1, "Xvfb has no display");
        let start = |command: &mut Command| {
            Running(command.env("DISPLAY", &display).env_remove("WAYLAND_DISPLAY").spawn().expect("a program to start"))
        };
        // Without a window manager no window has the keyboard.
        let manager = start(Command::new("openbox").stdout(Stdio::null()).stderr(Stdio::null()));
        let mut game = start(
            Command::new(env::current_exe().unwrap())
                .args(["--exact", "window::game", "--nocapture"])
                .env(GAME, "1")
                .current_dir(env!("CARGO_MANIFEST_DIR"))
                .stdin(Stdio::piped())
                .stdout(Stdio::piped()),
        );
        let (sender, reports) = channel();
        let lines = BufReader::new(game.0.stdout.take().unwrap()).lines();
        thread::spawn(move || {
            for line in lines.map_while(Result::ok).filter(|line| line.starts_with('{')) {
                let Ok(report) = serde_json::from_str(&line) else { continue };
                if sender.send(report).is_err() {
                    return;
                }
            }
        });
        let orders = game.0.stdin.take().unwrap();
        let pictures = pictures.to_owned();
        let _processes = vec![game, manager, Running(screen)];
        Self { display, orders, reports, last: Value::Null, pictures, _processes }
    }

    /// The newest report.
    fn look(&mut self) -> &Value {
        loop {
            match self.reports.try_recv() {
                Ok(report) => self.last = report,
                Err(mpsc::TryRecvError::Empty) if !self.last.is_null() => return &self.last,
                Err(mpsc::TryRecvError::Empty) => match self.reports.recv_timeout(PATIENCE) {
                    Ok(report) => self.last = report,
                    Err(RecvTimeoutError::Timeout) => panic!("the game does not start"),
                    Err(RecvTimeoutError::Disconnected) => panic!("the game has ended"),
                },
                Err(mpsc::TryRecvError::Disconnected) => panic!("the game has ended"),
            }
        }
    }

    fn wait(&mut self, what: &str, is_it: impl Fn(&Value) -> bool) {
        let end = Instant::now() + PATIENCE;
        while !is_it(self.look()) {
            assert!(Instant::now() < end, "waited in vain until {what}: {}", self.last);
            thread::sleep(PERIOD / 4);
        }
    }

    /// Waits until a text is on the screen that is, or contains, this one.
    fn wait_for(&mut self, text: &str) {
        self.wait(&format!("{text:?} is on the screen"), |report| find(report, text).is_some());
    }

    fn hand(&self, arguments: &[&str]) {
        let status = Command::new("xdotool").env("DISPLAY", &self.display).args(arguments).status();
        assert!(status.expect("xdotool, which cargo xtask installs").success(), "xdotool {arguments:?}");
    }

    /// Waits for two reports: the game has drawn a frame in between, which can take long without a graphics card.
    fn frame(&mut self) {
        self.look();
        for _ in 0..2 {
            self.last = self.reports.recv_timeout(PATIENCE).expect("a report of the game");
        }
    }

    fn key(&mut self, key: &str) {
        // A key that is held repeats.
        self.hand(&["key", key]);
        self.frame();
    }

    /// Moves the pointer to a place in the window, which the window manager has given a frame.
    fn point_at(&self, [x, y]: [f64; 2]) {
        let (x, y) = (x.round().to_string(), y.round().to_string());
        self.hand(&["search", "--onlyvisible", "--name", "^troubles$", "mousemove", "--window", "%1", &x, &y]);
    }

    fn click_at(&mut self, place: [f64; 2]) {
        self.point_at(place);
        self.frame();
        // A button that is held for most of a second is no click.
        self.hand(&["click", "1"]);
        self.frame();
    }

    /// Clicks on a tab, whose name may also be elsewhere on the screen.
    fn click_tab(&mut self, name: &str) {
        let tabs = find(self.look(), "world").expect("the first tab")[1];
        let texts = self.last["texts"].as_array().expect("texts");
        let is_it = |seen: &&Value| seen[0] == name && seen[2].as_f64().is_some_and(|y| (y - tabs).abs() < 8.0);
        let tab = texts.iter().find(is_it).and_then(|seen| Some([seen[1].as_f64()?, seen[2].as_f64()?]));
        self.click_at(tab.expect("a tab"));
    }

    fn click(&mut self, text: &str) {
        self.wait_for(text);
        let place = find(&self.last, text).unwrap();
        self.click_at(place);
    }

    /// Clicks on the map, from this end on, until the region is selected.
    fn click_on_map(&mut self, region: &str, from_left: bool) {
        self.wait_for("5 s");
        let wanted = self.look()[region]["region"].clone();
        // Between the tabs and the table. The details have such a text too, farther right.
        let texts = self.last["texts"].as_array().expect("texts");
        let [above, below] = ["regions", "5 s"].map(|text| {
            let is_it = |seen: &&Value| seen[0] == text && seen[1].as_f64() < Some(580.0);
            texts.iter().find(is_it).and_then(|seen| seen[2].as_f64()).expect("the tab with the map")
        });
        for step in 0..16 {
            let x = if from_left { 26.0 + 16.0 * f64::from(step) } else { 564.0 - 16.0 * f64::from(step) };
            self.click_at([x, (above + below) / 2.0]);
            if self.last["selected"] == wanted {
                return;
            }
        }
        panic!("no click on the map selects {region}: {}", self.last);
    }

    /// Puts a number into the field with this text.
    fn type_into(&mut self, field: &str, number: &str) {
        self.click(field);
        // The field selects all of its text.
        self.frame();
        self.hand(&["type", number]);
        self.frame();
        self.key("Return");
    }

    /// Shows the details of a column, whose place is typed in.
    fn show_column(&mut self, ColumnPos { x, z }: ColumnPos) {
        self.click("Column [");
        self.type_into("x ", &x.to_string());
        self.type_into("z ", &z.to_string());
        self.wait("the column is selected", |report| report["column"] == json!([x, z]));
    }

    fn picture(&mut self, name: &str) {
        let path = self.pictures.join(format!("{name}.png"));
        // Hints disappear with the pointer.
        self.point_at([955.0, 535.0]);
        (0..3).for_each(|_| self.frame());
        writeln!(self.orders, "{}", path.display()).unwrap();
        let end = Instant::now() + PATIENCE;
        // A picture of one color is much smaller.
        while fs::metadata(&path).map_or(0, |file| file.len()) < 20_000 {
            assert!(Instant::now() < end, "there is no picture {name}");
            thread::sleep(PERIOD);
        }
    }
}

/// The center of the last text that is this one, or else that begins with it, or else that contains it: details are drawn last.
fn find(report: &Value, text: &str) -> Option<[f64; 2]> {
    let texts = report["texts"].as_array()?;
    let ways: [fn(&str, &str) -> bool; 3] =
        [|seen, text| seen == text, |seen, text| seen.starts_with(text), |seen, text| seen.contains(text)];
    let found = ways
        .into_iter()
        .find_map(|is_it| texts.iter().rev().find(|seen| seen[0].as_str().is_some_and(|seen| is_it(seen, text))));
    found.and_then(|seen| Some([seen[1].as_f64()?, seen[2].as_f64()?]))
}

/// A desk with the overlay open. The pictures are in the folder of this variable, or gone with the test.
fn desk_with_overlay(temporary: &Path) -> Desk {
    let pictures = env::var_os(PICTURES).map_or_else(|| temporary.to_owned(), PathBuf::from);
    let mut desk = Desk::new(&pictures);
    desk.wait("the meadow is there", |report| report["meadow"]["columns"].as_u64() > Some(50));
    assert_eq!(desk.last["visible"], false);
    desk.key("F3");
    desk.wait("the overlay is shown", |report| report["visible"] == true);
    desk
}

/// Promise, overlay: In a window, with real clicks and keys, the overlay answers why: ground that stays, a slow region, a halted one,
/// ground that does not come, an entity that has gone.
#[test]
fn a_person_finds_out_why_ground_stays_and_a_region_is_slow() {
    let temporary = tempfile::tempdir().unwrap();
    let mut desk = desk_with_overlay(temporary.path());

    // Ground far away stays loaded. The map shows a second region, and a column of it names the scout.
    desk.key("1");
    desk.wait("the scout is there", |report| report["outpost"]["columns"].as_u64() > Some(10));
    desk.click_on_map("outpost", false);
    let title = format!("Region {}", desk.last["outpost"]["region"]);
    desk.wait_for(&title);
    desk.show_column(OUTPOST.column());
    desk.wait_for(&format!("held by viewer {SCOUT}"));
    desk.picture("why_held");

    // A region is slow. A profile names the system.
    desk.click_on_map("meadow", true);
    desk.key("2");
    desk.wait("it is slow", |report| report["meadow"]["tps"].as_f64().is_some_and(|tps| tps < 15.0));
    desk.wait_for("Make a profile");
    // The button moves if the region's state changes in between.
    desk.click("profile 10 s");
    while find(desk.look(), "measuring").is_none() {
        desk.click("profile 10 s");
    }
    desk.wait_for("troubles::grind");
    let [x, y] = find(&desk.last, "troubles::grind").unwrap();
    let texts = desk.last["texts"].as_array().unwrap();
    let beside =
        texts.iter().filter(|text| (text[2].as_f64().unwrap() - y).abs() < 4.0 && text[1].as_f64().unwrap() < x);
    let share = beside.filter_map(|text| text[0].as_str()?.strip_suffix(" %")?.parse::<u32>().ok()).next();
    assert!(share.is_some_and(|share| share > 80), "the mills take most of the time: {share:?} {texts:?}");
    desk.picture("why_slow");
}

/// Promise, overlay: In a window, with real clicks and keys, the overlay answers why: ground that stays, a slow region, a halted one,
/// ground that does not come, an entity that has gone.
#[test]
fn a_person_finds_out_why_things_are_gone_or_stand_still() {
    let temporary = tempfile::tempdir().unwrap();
    let mut desk = desk_with_overlay(temporary.path());

    // An entity is looked at and changed.
    desk.click_on_map("meadow", true);
    desk.click_tab("entities");
    desk.click("Bess");
    desk.wait("Bess is selected", |report| report["entity"] == BESS.to_string());
    desk.click("Sheep");
    desk.type_into("7", "42");
    desk.wait("she has more wool", |report| report["wool"] == 42);

    // Her crossings tell where she went, to the end.
    desk.key("1");
    desk.wait("the scout is there", |report| report["outpost"]["columns"].as_u64() > Some(10));
    desk.key("4");
    let outpost = desk.look()["outpost"]["region"].clone();
    desk.wait_for(&format!("came to region {outpost}"));
    desk.key("5");
    desk.wait_for("gone: ");
    desk.picture("why_gone");

    // A region is halted by hand and restarted, and then halted by a bomb.
    desk.click_tab("regions");
    desk.click("Region ");
    desk.click("halt");
    desk.wait("it is halted", |report| report["meadow"]["halted"] == true);
    desk.click("restart");
    let is_back =
        |report: &Value| report["meadow"]["halted"] == false && report["meadow"]["columns"].as_u64() > Some(50);
    desk.wait("it ticks again", is_back);
    desk.key("3");
    desk.wait("the bomb goes off", |report| report["meadow"]["halted"] == true);
    desk.wait_for("the fuse of a bomb was lit");
    desk.wait_for("troubles::explode");
    desk.picture("why_halted");

    // Some ground does not come. Its column has the words of the generator.
    desk.wait("it is given up", |report| report["failing"] == 1);
    desk.show_column(HOLE);
    desk.wait_for("the plan of the mine is missing");
    desk.wait_for("try again");
    desk.picture("why_missing");
}
