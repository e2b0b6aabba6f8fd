//! JSON-RPC 2.0: requests and answers, as in Bevy's remote protocol.

use crate::error::{RpcError, code, no_answer};
use crate::json;
use crate::methods::{Question, Reply};
use crate::requests::Shared;
use serde_json::{Map, Value};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Instant;

/// The size of an answer, that of a batch included.
const MOST_ANSWER: usize = 1 << 20;
/// The requests in a batch.
const MOST_IN_BATCH: usize = 16;

/// The answer to a request that could not be read.
pub fn refusal(error: RpcError) -> String {
    response(&Value::Null, Err(error))
}

/// Answers a request or a batch of them, when the main world and the regions have.
pub fn answer(body: &[u8], shared: &Shared) -> String {
    // Text that is nested deeper than 128 is an error.
    match serde_json::from_slice(body) {
        Ok(Value::Array(requests)) if (1..=MOST_IN_BATCH).contains(&requests.len()) => {
            // All are asked before the first answer is waited for.
            let started: Vec<_> = requests.into_iter().map(|request| Started::new(request, shared)).collect();
            let mut text = String::from("[");
            for (number, started) in started.into_iter().enumerate() {
                text.push_str(if number == 0 { "" } else { "," });
                text.push_str(&started.finish(MOST_ANSWER.saturating_sub(text.len())));
            }
            text + "]"
        }
        Ok(Value::Array(_)) => {
            refusal(RpcError::new(code::REQUEST, format!("a batch has 1 to {MOST_IN_BATCH} requests")))
        }
        Ok(request) => Started::new(request, shared).finish(MOST_ANSWER),
        Err(error) => refusal(RpcError::new(code::PARSE, error.to_string())),
    }
}

/// A request that was handed to the main world.
struct Started {
    id: Value,
    reply: Result<(Receiver<Reply>, Instant), RpcError>,
}

impl Started {
    fn new(request: Value, shared: &Shared) -> Self {
        let id = request.get("id").cloned().unwrap_or_default();
        // The game's code reads the values of components.
        let reply = catch_unwind(AssertUnwindSafe(|| {
            let (method, params) = method(request)?;
            shared.ask(Question::parse(&method, params, &shared.rights)?)
        }));
        Self { id, reply: reply.unwrap_or_else(|_| Err(panicked())) }
    }

    /// Waits for the answer.
    fn finish(self, most: usize) -> String {
        let answer = self.reply.and_then(|(reply, until)| {
            let answer = reply.recv_timeout(until.saturating_duration_since(Instant::now()));
            let render = answer.map_err(|reason| match reason {
                RecvTimeoutError::Timeout => no_answer(),
                RecvTimeoutError::Disconnected => RpcError::new(code::NO_ANSWER, "the app ends"),
            })??;
            catch_unwind(AssertUnwindSafe(|| render(most))).unwrap_or_else(|_| Err(panicked()))
        });
        response(&self.id, answer)
    }
}

fn panicked() -> RpcError {
    RpcError::new(code::INTERNAL, "the request panicked: the log of the game has the reason")
}

/// The method and the parameters of a request.
fn method(request: Value) -> Result<(String, Value), RpcError> {
    let wrong = |what: &str| RpcError::new(code::REQUEST, what);
    let Value::Object(mut request) = request else { return Err(wrong("a request is an object")) };
    if request.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return Err(wrong("a request has \"jsonrpc\": \"2.0\""));
    }
    let Some(Value::String(method)) = request.remove("method") else {
        return Err(wrong("a request has a \"method\", which is a string"));
    };
    match request.remove("params") {
        Some(params @ Value::Object(_)) => Ok((method, params)),
        None | Some(Value::Null) => Ok((method, Value::Object(Map::new()))),
        Some(_) => Err(RpcError::new(code::PARAMS, "\"params\" is an object")),
    }
}

fn response(id: &Value, answer: Result<String, RpcError>) -> String {
    match answer {
        Ok(result) => format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#),
        Err(RpcError { code, message }) => {
            let message = json::text(&message, usize::MAX).unwrap_or_default();
            format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":{code},"message":{message}}}}}"#)
        }
    }
}
