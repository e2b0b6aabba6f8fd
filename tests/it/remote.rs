//! Regions over HTTP: a client in another language reads and changes them, and whoever is not allowed to is refused.

use crate::support::*;
use bevy::reflect::ReflectSerialize;
use bevy_terrane::prelude::*;
use bevy_terrane::view::{LogIn, RegionOrder};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use terrane_remote::{RegionRemotePlugin, RemoteServer};
use uuid::Uuid;

const HERE: BlockPos = BlockPos::new(8, 5, 8);

/// Sends requests, and prints the status and the JSON of each answer.
const CLIENT: &str = r#"
import http.client, json, sys
for request in json.load(sys.stdin):
    headers = {name: value for name, value in request["headers"].items() if value is not None}
    connection = http.client.HTTPConnection(sys.argv[1], timeout=60)
    connection.request(request["method"], request["path"], request["body"], headers)
    answer = connection.getresponse()
    print(json.dumps([answer.status, json.loads(answer.read())]))
"#;

// The codes of errors, as the README lists them.
const PARSE: i64 = -32700;
const REQUEST: i64 = -32600;
const METHOD: i64 = -32601;
const PARAMS: i64 = -32602;
const NO_ENTITY: i64 = -23401;
const COMPONENT: i64 = -23402;
const NO_PLACE: i64 = -23601;
const HALTED: i64 = -23602;
const NO_ANSWER: i64 = -23603;
const BUSY: i64 = -23604;
const FORBIDDEN: i64 = -23605;

#[derive(Component, Reflect, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[reflect(Component, Default)]
struct Purse {
    coins: u32,
    notes: Vec<String>,
}

/// The coins that a system has seen, and how often they have changed.
#[derive(Component, Reflect, Clone, Debug, Default, PartialEq)]
#[reflect(Component, Default)]
struct Seen {
    coins: u32,
    changes: u32,
}

/// A component that JSON cannot say.
#[derive(Component, Reflect, Clone)]
#[reflect(opaque)]
#[reflect(Component, Clone)]
struct Unspeakable;

/// A component that contains itself.
#[derive(Component, Reflect, Clone)]
#[reflect(opaque)]
#[reflect(Component, Clone, Serialize)]
struct Ring(Arc<Mutex<Vec<Ring>>>);

impl Serialize for Ring {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let parts = self.0.lock().unwrap().clone();
        serializer.collect_seq(parts)
    }
}

/// A component that may be nested deep.
#[derive(Component, Reflect, Clone, Default)]
#[reflect(no_field_bounds)]
#[reflect(Component, Default)]
struct Nest {
    parts: Vec<Nest>,
}

fn watch(mut purses: Query<(&Purse, &mut Seen), Changed<Purse>>) {
    for (purse, mut seen) in &mut purses {
        *seen = Seen { coins: purse.coins, changes: seen.changes + 1 };
    }
}

fn id(number: u128) -> Uuid {
    Uuid::from_u128(number)
}

fn world(allow_writes: bool) -> (App, DimensionId) {
    let mut app = game(lockstep());
    app.add_plugins(RegionRemotePlugin { address: (Ipv4Addr::LOCALHOST, 0).into(), allow_writes })
        .register_type::<Purse>()
        .register_type::<Seen>()
        .register_type::<Unspeakable>()
        .register_type::<Ring>()
        .register_type::<Nest>()
        .register_saved_component::<Purse>()
        .register_region_component::<Seen>()
        .register_region_component::<Unspeakable>()
        .register_region_component::<Ring>()
        .register_region_component::<Nest>()
        .add_region_plugins(|region| {
            region.add_systems(RegionTick, watch);
        });
    let dimension = flat(&mut app);
    viewer(&mut app, dimension, 8.0, 8.0, 3);
    start(&mut app);
    update_until(&mut app, "a region is published", |world| {
        region_at(world, dimension, HERE.column()).is_some_and(|region| region.columns > 10)
    });
    (app, dimension)
}

fn address(app: &App) -> SocketAddr {
    app.world().resource::<RemoteServer>().address()
}

/// A request to `terrane.METHOD` with the right headers.
fn request(app: &App, method: &str, params: Value) -> Value {
    let token = app.world().resource::<RemoteServer>().token();
    let body = json!({"jsonrpc": "2.0", "id": 7, "method": format!("terrane.{method}"), "params": params});
    json!({
        "method": "POST",
        "path": "/",
        "headers": {"Authorization": format!("Bearer {token}")},
        "body": body.to_string(),
    })
}

/// Sends requests one after the other while the app runs. Returns the status and the JSON of each answer.
fn send(app: &mut App, requests: Vec<Value>) -> Vec<(u64, Value)> {
    let (address, count) = (address(app).to_string(), requests.len());
    let (sender, ended) = channel();
    thread::spawn(move || {
        let mut python = Command::new("python3");
        python.args(["-c", CLIENT, &address]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut python = python.spawn().expect("python3 is needed");
        python.stdin.take().unwrap().write_all(json!(requests).to_string().as_bytes()).unwrap();
        let _ = sender.send(python.wait_with_output().unwrap());
    });
    let mut output = None;
    let patience = Patience { limit: Duration::from_secs(90), ..default() };
    update_until_within(app, patience, "the client has its answers", |_| {
        output = ended.try_recv().ok();
        output.is_some()
    });
    let text = String::from_utf8(output.unwrap().stdout).unwrap();
    let answers: Vec<(u64, Value)> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(answers.len(), count, "{text}");
    answers
}

/// The result of an answer, or the code and the message of its error.
fn result((status, answer): (u64, Value)) -> Result<Value, (i64, String)> {
    assert_eq!((status, &answer["jsonrpc"], &answer["id"]), (200, &json!("2.0"), &json!(7)), "{answer}");
    match answer.get("error") {
        Some(error) => Err((error["code"].as_i64().unwrap(), error["message"].as_str().unwrap().to_owned())),
        None => Ok(answer["result"].clone()),
    }
}

fn call(app: &mut App, method: &str, params: Value) -> Result<Value, (i64, String)> {
    let request = request(app, method, params);
    result(send(app, vec![request]).remove(0))
}

#[track_caller]
fn assert_fails(app: &mut App, method: &str, params: Value, code: i64, says: &str) {
    let (found, message) = call(app, method, params).unwrap_err();
    assert!(found == code && message.contains(says), "{found}: {message}");
}

/// The entity with its components. On a busy machine, the time of an answer may be over before all of them are read.
fn get(app: &mut App, entity: Uuid) -> Value {
    let is_whole = |look: &Value| !look["unavailable"].to_string().contains("the time for this answer was over");
    let mut looks = (0..10).map(|_| call(app, "get", json!({"entity": entity})).unwrap());
    looks.find(is_whole).expect("one of ten answers is in time")
}

/// The value of the component whose type path ends so.
fn component<'a>(look: &'a Value, end: &str) -> &'a Value {
    let mut components = look["components"].as_object().unwrap().iter();
    components.find(|(path, _)| path.ends_with(end)).unwrap_or_else(|| panic!("{look}")).1
}

fn region(app: &mut App) -> Value {
    let regions = call(app, "regions", json!({})).unwrap();
    regions["regions"][0]["region"].clone()
}

/// The parameters, and more of them.
fn with(params: &Value, more: Value) -> Value {
    let mut params = params.clone();
    params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    params
}

/// The entities of a region that match a filter, page by page.
fn entities(app: &mut App, region: &Value, filter: Value) -> Vec<Vec<Value>> {
    let (mut pages, mut next) = (Vec::new(), Value::Null);
    loop {
        let page = call(app, "query", with(&with(region, filter.clone()), json!({"after": next}))).unwrap();
        pages.push(page["entities"].as_array().unwrap().clone());
        next = page["next"].clone();
        if next.is_null() {
            return pages;
        }
    }
}

/// A raw connection, for clients that behave in no sane way.
fn connect(app: &App) -> TcpStream {
    let stream = TcpStream::connect(address(app)).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    stream
}

/// Sends text, and reads what comes back until the connection is closed.
fn exchange(app: &App, text: Vec<u8>) -> JoinHandle<String> {
    let mut stream = connect(app);
    thread::spawn(move || {
        // The endpoint may have closed it already.
        let _ = stream.write_all(&text);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8_lossy(&answer).into_owned()
    })
}

/// A whole request as text.
fn raw(app: &App, body: &str) -> Vec<u8> {
    let (address, token) = (address(app), app.world().resource::<RemoteServer>().token());
    let length = body.len();
    format!(
        "POST / HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\nContent-Length: {length}\r\n\r\n{body}"
    )
    .into_bytes()
}

fn join(app: &mut App, thread: JoinHandle<String>) -> String {
    update_until(app, "the client has its answer", |_| thread.is_finished());
    thread.join().unwrap()
}

/// Promise, remote: A client reads regions and their entities over HTTP, in pages.
#[test]
fn regions_and_entities_are_listed() {
    let (mut app, dimension) = world(false);
    in_region(&mut app, dimension, HERE, move |world| {
        for number in 0..600_u128 {
            let block = BlockPos::new(8 + number as i64 % 10, 5, 8);
            let entity = world.spawn((StableId(id(1 + number)), Position::new(dimension, block))).id();
            match number % 2 {
                0 => world.entity_mut(entity).insert(Name::new(format!("Sheep {number}"))),
                _ => world.entity_mut(entity).insert(Purse::default()),
            };
        }
    });
    update(&mut app, 10);
    let known = region_at(app.world(), dimension, HERE.column()).unwrap();
    let regions = call(&mut app, "regions", json!({"dimension": "overworld"})).unwrap();
    assert_eq!(regions["next"], Value::Null);
    let shown = &regions["regions"][0];
    assert_eq!((&shown["dimension"], &shown["region"]), (&json!("overworld"), &json!(known.region.index())));
    assert_eq!((&shown["halted"], &shown["paused"], &shown["entities"]), (&json!(false), &json!(false), &json!(600)));
    assert!(shown["columns"].as_u64().unwrap() > 10 && shown["ticks"].as_u64().unwrap() > 10, "{shown}");
    assert_eq!(
        call(&mut app, "regions", json!({"dimension": dimension.0})).unwrap()["regions"][0]["columns"],
        shown["columns"]
    );
    let after = json!({"after": [dimension.0, known.region.index()]});
    assert_eq!(call(&mut app, "regions", after).unwrap()["regions"], json!([]));
    assert_fails(&mut app, "regions", json!({"dimension": "moon"}), NO_PLACE, "moon");
    assert_fails(&mut app, "regions", json!({"dimension": 77}), NO_PLACE, "77");

    let place = json!({"dimension": "overworld", "region": known.region.index()});
    let all = entities(&mut app, &place, json!({}));
    let found: BTreeSet<&str> = all.iter().flatten().map(|found| found["entity"].as_str().unwrap()).collect();
    assert!(found.len() == 600 && all.len() >= 3 && all.iter().all(|page| page.len() <= 256), "{} pages", all.len());
    let sheep = entities(&mut app, &place, json!({"name": "sheep 10"})).concat();
    let names: BTreeSet<&str> = sheep.iter().map(|found| found["name"].as_str().unwrap()).collect();
    assert_eq!(names.len(), 1 + 5, "Sheep 10 and 100 to 108: {names:?}");
    let near = json!({"component": "Purse", "near": {"block": [9, 5, 8], "reach": 1}});
    let near = entities(&mut app, &place, near).concat();
    assert_eq!(near.len(), 60);
    let position = json!({"dimension": "overworld", "block": [9, 5, 8], "offset": [0.5, 0.0, 0.5]});
    assert!(near.iter().all(|found| found["kind"] == "Purse" && found["position"] == position), "{near:?}");
    assert_fails(&mut app, "query", json!({"dimension": "overworld", "region": 999}), NO_PLACE, "region 999");
    assert_fails(&mut app, "query", with(&place, json!({"nam": "sheep"})), PARAMS, "nam");
    // A cursor that never was one begins anew.
    let anew = call(&mut app, "query", with(&place, json!({"after": [u64::MAX, u64::MAX, u64::MAX]}))).unwrap();
    assert!(!anew["entities"].as_array().unwrap().is_empty());
    let beyond = with(&place, json!({"after": [known.region.index(), u64::MAX, u64::MAX]}));
    assert_eq!(call(&mut app, "query", beyond).unwrap()["entities"], json!([]));

    order(&mut app, dimension, HERE.column(), RegionOrder::Halt);
    update_until(&mut app, "it halts", |world| region_at(world, dimension, HERE.column()).is_some_and(|at| at.halted));
    assert_eq!(call(&mut app, "regions", json!({})).unwrap()["regions"][0]["halted"], json!(true));
    assert_fails(&mut app, "query", place, HALTED, "halted");
}

/// Promise, remote: A client changes, inserts and despawns over HTTP, and the next tick's systems see it.
#[test]
fn entities_are_read_changed_and_despawned() {
    let (mut app, dimension) = world(true);
    let purse = Purse { coins: 3, notes: vec!["from \"Ann\"\n".to_owned()] };
    spawn_in_region(
        &mut app,
        dimension,
        HERE,
        (StableId(id(1)), purse, Seen::default(), Unspeakable, Name::new("Zoë")),
    );
    update(&mut app, 3);
    let look = get(&mut app, id(1));
    assert_eq!((&look["entity"], &look["dimension"]), (&json!(id(1)), &json!("overworld")));
    assert_eq!(*component(&look, "::Purse"), json!({"coins": 3, "notes": ["from \"Ann\"\n"]}));
    assert_eq!(look["name"], json!("Zoë"));
    assert_eq!(*component(&look, "::Seen"), json!({"coins": 3, "changes": 1}));
    let unavailable: Vec<&String> = look["unavailable"].as_object().unwrap().keys().collect();
    assert!(unavailable.iter().any(|path| path.ends_with("::Unspeakable")), "{unavailable:?}");
    let reason = look["unavailable"][Unspeakable::type_path()].as_str().unwrap();
    assert!(reason.contains("Serialize"), "{reason}");

    // A field, and a component that it does not have, with a default for the other field.
    let components = json!({(Purse::type_path()): {"coins": 8}, (Nest::type_path()): {"parts": [{"parts": []}]}});
    assert_eq!(call(&mut app, "insert", json!({"entity": id(1), "components": components})), Ok(Value::Null));
    let look = get(&mut app, id(1));
    assert_eq!(component(&look, "::Purse")["coins"], json!(8));
    assert_eq!(*component(&look, "::Seen"), json!({"coins": 8, "changes": 2}), "a system has seen it");
    assert_eq!(*component(&look, "::Nest"), json!({"parts": [{"parts": []}]}));

    // All or nothing, and what breaks the entity is refused.
    let insert = |components: Value| json!({"entity": id(1), "components": components});
    let halves = json!({(Purse::type_path()): {"coins": 9}, (StableId::type_path()): id(2)});
    assert_fails(&mut app, "insert", insert(halves), COMPONENT, "StableId");
    let far = json!({"dimension": dimension.0, "block": {"x": 1_000_000, "y": 5, "z": 0}, "offset": [0.0, 0.0, 0.0]});
    assert_fails(&mut app, "insert", insert(json!({(Position::type_path()): far})), COMPONENT, "outside");
    let wrong = json!({(Purse::type_path()): {"coins": "many"}});
    assert_fails(&mut app, "insert", insert(wrong), COMPONENT, "Purse");
    assert_fails(&mut app, "insert", insert(json!({"no::such::Type": 1})), COMPONENT, "no::such::Type");
    assert_eq!(component(&get(&mut app, id(1)), "::Purse")["coins"], json!(8));

    app.world_mut().write_message(LogIn { name: "Ann".to_owned(), first_place: Some((dimension, HERE)) });
    update(&mut app, 20);
    let params = json!({"dimension": "overworld", "region": region(&mut app), "component": "Player"});
    let player = entities(&mut app, &params, json!({})).concat()[0]["entity"].clone();
    assert_fails(&mut app, "despawn", json!({"entity": player}), FORBIDDEN, "player");
    assert_eq!(call(&mut app, "despawn", json!({"entity": id(1)})), Ok(Value::Null));
    assert_fails(&mut app, "get", json!({"entity": id(1)}), NO_ENTITY, "no entity");
    assert_fails(&mut app, "despawn", json!({"entity": id(1)}), NO_ENTITY, "no entity");
    assert_fails(&mut app, "get", json!({"entity": "no uuid"}), PARAMS, "UUID");
}

/// Promise, remote: A client reads and sets blocks over HTTP.
#[test]
fn blocks_are_read_and_set() {
    let (mut app, dimension) = world(true);
    let place = |y: i64| json!({"dimension": "overworld", "position": [8, y, 8]});
    let grass = call(&mut app, "block", place(0)).unwrap();
    assert_eq!((&grass["block"], &grass["light"]["sky"]), (&json!("terrane:grass"), &json!(0)));
    assert_eq!(call(&mut app, "block", place(5)).unwrap()["light"], json!({"sky": 15, "block": 0, "now": 15}));
    let mut set = place(5);
    set["block"] = json!("terrane:stone");
    let answer = call(&mut app, "block", set).unwrap();
    assert_eq!((&answer["block"], &answer["before"]), (&json!("terrane:stone"), &json!("terrane:air")));
    assert_eq!(call(&mut app, "block", place(5)).unwrap()["block"], json!("terrane:stone"));
    assert_eq!(block_at(app.world(), dimension, HERE), Some(id_of(app.world(), "terrane:stone")));

    let mut unknown = place(5);
    unknown["block"] = json!("terrane:stome");
    assert_fails(&mut app, "block", unknown, PARAMS, "terrane:stone");
    let far = json!({"dimension": "overworld", "position": [1_000_000, 5, 8]});
    assert_fails(&mut app, "block", far, NO_PLACE, "not loaded");
    let mut high = place(1_000);
    high["block"] = json!("terrane:stone");
    assert_fails(&mut app, "block", high, NO_PLACE, "height");
}

/// Promise, remote: A client measures the systems of a region over HTTP.
#[test]
fn a_region_is_profiled() {
    let (mut app, _) = world(false);
    let place = |seconds: u64, region: Value| json!({"dimension": "overworld", "region": region, "seconds": seconds});
    let region = region(&mut app);
    let began = Instant::now();
    let profile = call(&mut app, "profile", place(1, region.clone())).unwrap();
    assert!(began.elapsed() >= Duration::from_secs(1));
    assert!(profile["ticks"].as_u64().unwrap() > 10 && profile["elapsed_ms"].as_f64().unwrap() >= 1e3, "{profile}");
    let parts = profile["parts"].as_array().unwrap();
    let watch = parts.iter().find(|part| part["name"].as_str().unwrap().ends_with("::watch")).unwrap();
    assert_eq!(watch["schedule"], json!("RegionTick"));
    // The tick in which it begins may count for the systems only.
    assert!(watch["runs"].as_u64().unwrap().abs_diff(profile["ticks"].as_u64().unwrap()) <= 1, "{profile}");
    for seconds in [0, 61] {
        assert_fails(&mut app, "profile", place(seconds, region.clone()), PARAMS, "seconds");
    }
    assert_fails(&mut app, "profile", place(1, json!(999)), NO_PLACE, "region 999");
}

/// Promise, remote: Nobody without the token, no web page and no other host gets an answer, and all requests are bounded.
#[test]
fn requests_that_are_not_allowed_are_refused() {
    let (mut app, _) = world(false);
    let good = request(&app, "regions", json!({}));
    let local = address(&app);
    let header = |name: &str, value: Value| {
        let mut request = good.clone();
        request["headers"][name] = value;
        request
    };
    let part = |name: &str, value: Value| {
        let mut request = good.clone();
        request[name] = value;
        request
    };
    let token = good["headers"]["Authorization"].as_str().unwrap();
    let batch = |count: usize| Value::String(format!("[{}]", vec![good["body"].as_str().unwrap(); count].join(",")));
    let cases = vec![
        (good.clone(), 200, 0),
        (header("Host", json!(format!("localhost:{}", local.port()))), 200, 0),
        (header("Origin", json!(format!("http://{local}"))), 200, 0),
        (header("Authorization", Value::Null), 401, REQUEST),
        (header("Authorization", json!("Bearer 00000000000000000000000000000000")), 401, REQUEST),
        (header("Authorization", json!(token[..token.len() - 1])), 401, REQUEST),
        (header("Authorization", json!(token.replace("Bearer", "Basic"))), 401, REQUEST),
        (header("Origin", json!("http://evil.example")), 403, REQUEST),
        (header("Origin", json!("null")), 403, REQUEST),
        (header("Origin", json!(format!("http://{local}.evil.example"))), 403, REQUEST),
        (header("Host", json!(format!("evil.example:{}", local.port()))), 403, REQUEST),
        (header("Host", json!("127.0.0.1:1")), 403, REQUEST),
        (header("Transfer-Encoding", json!("chunked")), 411, REQUEST),
        (header("X-Large", json!("x".repeat(20_000))), 431, REQUEST),
        (part("method", json!("GET")), 405, REQUEST),
        (part("path", json!("/x")), 404, REQUEST),
        (part("body", json!(" ".repeat((64 << 10) + 1))), 413, REQUEST),
        (part("body", json!(" ".repeat(64 << 10))), 200, PARSE),
        (part("body", json!("[".repeat(60_000))), 200, PARSE),
        (part("body", json!("{\"a\":".repeat(10_000))), 200, PARSE),
        (part("body", json!("no JSON")), 200, PARSE),
        (part("body", json!("1")), 200, REQUEST),
        (part("body", json!("[]")), 200, REQUEST),
        (part("body", batch(17)), 200, REQUEST),
        (part("body", json!(good["body"].as_str().unwrap().replace("2.0", "1.0"))), 200, REQUEST),
        (part("body", json!(good["body"].as_str().unwrap().replace("{}", "[1]"))), 200, PARAMS),
        (request(&app, "no_such_method", json!({})), 200, METHOD),
    ];
    let answers = send(&mut app, cases.iter().map(|(request, ..)| request.clone()).collect());
    for ((request, status, code), (found, answer)) in cases.iter().zip(&answers) {
        let found = (*found, answer["error"]["code"].as_i64().unwrap_or_default());
        assert_eq!(found, (*status, *code), "{answer} to {:.500}", request.to_string());
    }
    // No header lets pages of other origins read an answer.
    let options = format!("OPTIONS / HTTP/1.1\r\nHost: {local}\r\nOrigin: http://evil.example\r\n\r\n");
    let options = exchange(&app, options.into_bytes());
    let answer = join(&mut app, options).to_lowercase();
    assert!(answer.starts_with("http/1.1 403") && !answer.contains("access-control"), "{answer}");

    let batch = send(&mut app, vec![part("body", batch(16))]).remove(0);
    let answers = batch.1.as_array().unwrap();
    assert!(
        batch.0 == 200 && answers.len() == 16 && answers.iter().all(|answer| answer["result"]["regions"].is_array())
    );
}

/// Promise, remote: Without `allow_writes`, a client changes nothing.
#[test]
fn it_only_reads_unless_the_game_allows_more() {
    let (mut app, dimension) = world(false);
    spawn_in_region(&mut app, dimension, HERE, (StableId(id(1)), Purse::default()));
    update(&mut app, 3);
    let components = json!({(Purse::type_path()): {"coins": 8}});
    let block = json!({"dimension": "overworld", "position": [8, 5, 8], "block": "terrane:stone"});
    for (method, params) in [
        ("insert", json!({"entity": id(1), "components": components})),
        ("despawn", json!({"entity": id(1)})),
        ("block", block),
    ] {
        assert_fails(&mut app, method, params, FORBIDDEN, "allow_writes");
    }
    let look = get(&mut app, id(1));
    assert_eq!(component(&look, "::Purse")["coins"], json!(0));
    let block = call(&mut app, "block", json!({"dimension": "overworld", "position": [8, 5, 8]})).unwrap();
    assert_eq!(block["block"], json!("terrane:air"));
}

/// Promise, remote: A value that is cyclic, nested deep or large is left out, and the rest of its entity is shown.
#[test]
fn endless_and_large_values_are_left_out() {
    let (mut app, dimension) = world(true);
    let ring = Ring(Arc::default());
    ring.0.lock().unwrap().push(ring.clone());
    let nest = (0..1_000).fold(Nest::default(), |inner, _| Nest { parts: vec![inner] });
    spawn_in_region(&mut app, dimension, HERE, (StableId(id(1)), ring.clone(), nest, Seen::default()));
    let purse = Purse { coins: 1, notes: vec!["\u{1}".repeat(500_000)] };
    spawn_in_region(&mut app, dimension, HERE, (StableId(id(2)), purse));
    update(&mut app, 3);
    let look = get(&mut app, id(1));
    assert_eq!(component(&look, "::Seen")["coins"], json!(0));
    for path in [Ring::type_path(), Nest::type_path()] {
        let reason = look["unavailable"][path].as_str().unwrap_or_else(|| panic!("{look}"));
        assert!(reason.contains("nested too deep"), "{reason}");
    }
    // It is half a megabyte of text, and three in JSON.
    let look = call(&mut app, "get", json!({"entity": id(2)})).unwrap();
    assert_eq!(component(&look, "::Position")["block"]["y"], json!(5));
    assert!(look["unavailable"][Purse::type_path()].as_str().unwrap().contains("larger"), "{look}");

    // In the other direction, JSON that is nested too deep is none.
    let nested = |app: &App, depth: usize| {
        let mut body = request(app, "insert", json!({"entity": id(2), "components": {(Nest::type_path()): "DEEP"}}));
        let deep = "{\"parts\":[".repeat(depth) + &"]}".repeat(depth);
        body["body"] = json!(body["body"].as_str().unwrap().replace("\"DEEP\"", &deep));
        body
    };
    let requests = vec![nested(&app, 1_000), nested(&app, 60)];
    let answers = send(&mut app, requests);
    assert_eq!((answers[0].0, &answers[0].1["error"]["code"]), (200, &json!(PARSE)), "{answers:?}");
    let (code, message) = result(answers[1].clone()).unwrap_err();
    assert!(code == COMPONENT && message.contains("nested too deep"), "{code}: {message}");
    // What is too deep to be read is too deep to be changed.
    let params = json!({"entity": id(1), "components": {(Nest::type_path()): {"parts": []}}});
    assert_fails(&mut app, "insert", params, COMPONENT, "present value");
    ring.0.lock().unwrap().clear();
}

/// Promise, remote: Requests that no region answers end with an error, and only so many wait at a time.
#[test]
fn requests_under_way_are_bounded_and_end() {
    let (mut app, dimension) = world(false);
    spawn_in_region(&mut app, dimension, HERE, (StableId(id(1)), Purse::default()));
    update(&mut app, 3);
    order(&mut app, dimension, HERE.column(), RegionOrder::Pause);
    update(&mut app, 10);
    let get = json!({"jsonrpc": "2.0", "id": 7, "method": "terrane.get", "params": {"entity": id(1)}}).to_string();
    let batch = raw(&app, &format!("[{}]", vec![&*get; 16].join(",")));
    let began = Instant::now();
    let waiting = [exchange(&app, batch.clone()), exchange(&app, batch)];
    run_for(&mut app, Duration::from_millis(500));
    let one = exchange(&app, raw(&app, &get));
    let answer = join(&mut app, one);
    assert!(answer.contains(&BUSY.to_string()) && began.elapsed() < Duration::from_secs(5), "{answer}");
    for waiting in waiting {
        let answer = join(&mut app, waiting);
        assert_eq!(answer.matches(&NO_ANSWER.to_string()).count(), 16, "{answer}");
    }
    assert!(began.elapsed() >= Duration::from_secs(10));
    order(&mut app, dimension, HERE.column(), RegionOrder::Resume);
    update(&mut app, 10);
    let one = exchange(&app, raw(&app, &get));
    assert!(join(&mut app, one).contains("\"result\""));
}

/// Promise, remote: A client that sends or reads slowly keeps no other client waiting, and is cut off.
#[test]
fn slow_clients_are_cut_off_and_hold_up_nobody() {
    let (mut app, _) = world(false);
    let began = Instant::now();
    // Some never end their headers, some their body, and one does not read.
    let whole = String::from_utf8(raw(&app, "{}")).unwrap();
    let unread = ask_without_reading(&app, whole.as_bytes());
    let halves: Vec<_> = (0..40)
        .map(|number| if number % 2 == 0 { &whole[..30] } else { &whole[..whole.len() - 1] })
        .map(|part| exchange(&app, part.as_bytes().to_vec()))
        .collect();
    // A line without an end takes no unbounded memory.
    let endless = exchange(&app, vec![b'x'; 1 << 20]);
    assert!(join(&mut app, endless).starts_with("HTTP/1.1 431"));
    assert!(call(&mut app, "regions", json!({})).is_ok());
    assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
    for half in halves {
        assert_eq!(join(&mut app, half), "", "it is closed without an answer");
    }
    assert!(began.elapsed() >= Duration::from_secs(5) && began.elapsed() < Duration::from_secs(20));
    drop(unread);

    // More connections than there are threads are told so, until some of those end.
    let idle: Vec<_> = (0..64).map(|_| connect(&app)).collect();
    run_for(&mut app, Duration::from_millis(200));
    let one = exchange(&app, raw(&app, "{}"));
    let answer = join(&mut app, one);
    assert!(answer.starts_with("HTTP/1.1 503") || answer.is_empty(), "{answer}");
    drop(idle);
    run_for(&mut app, Duration::from_millis(200));
    assert!(call(&mut app, "regions", json!({})).is_ok());
}

/// A connection on which this is sent, and nothing is read.
fn ask_without_reading(app: &App, text: &[u8]) -> TcpStream {
    let mut stream = connect(app);
    stream.write_all(text).unwrap();
    stream
}

/// Promise, remote: The endpoint closes with its resource, and another app's token is another one.
#[test]
fn the_endpoint_closes_with_its_resource() {
    let (mut app, _) = world(false);
    let address = address(&app);
    let server = app.world_mut().remove_resource::<RemoteServer>().unwrap();
    let (other, _) = world(false);
    let token = other.world().resource::<RemoteServer>().token();
    assert!(token.len() == 32 && token != server.token());
    drop(server);
    let began = Instant::now();
    while TcpStream::connect(address).is_ok() {
        assert!(began.elapsed() < Duration::from_secs(10), "it is still open");
        thread::sleep(Duration::from_millis(10));
    }
    app.update();
}
