//! Somebody who is told: a webhook on this machine that now and then says that it has no time.

use std::sync::{Arc, Mutex};

use serde_json::Value;
use tokio::runtime::Runtime;
use wiremock::matchers::method;
use wiremock::{Mock, MockServer, Request, ResponseTemplate};

/// Of so many deliveries one is turned away.
const TURNED_AWAY: usize = 4;

pub struct Webhook {
    server: MockServer,
    seen: Arc<Mutex<Seen>>,
    _runtime: Runtime,
}

#[derive(Debug, Default)]
struct Seen {
    deliveries: usize,
    taken: Vec<Value>,
}

impl Webhook {
    pub fn new() -> Self {
        let runtime = Runtime::new().expect("a runtime starts");
        let seen = Arc::new(Mutex::new(Seen::default()));
        let ours = Arc::clone(&seen);
        let answer = move |request: &Request| {
            let mut seen = ours.lock().expect("nobody panics while holding this lock");
            seen.deliveries += 1;
            if seen.deliveries.is_multiple_of(TURNED_AWAY) {
                return ResponseTemplate::new(503);
            }
            seen.taken.push(serde_json::from_slice(&request.body).expect("it is JSON"));
            ResponseTemplate::new(200)
        };
        let server = runtime.block_on(async {
            let server = MockServer::start().await;
            Mock::given(method("POST")).respond_with(answer).mount(&server).await;
            server
        });
        Self { server, seen, _runtime: runtime }
    }

    /// The lines of a schedule that name it.
    pub fn lines(&self) -> String {
        format!("[alerts]\nmissing_nights = 2\n[[alerts.webhooks]]\nurl = \"{}/hook\"\nform = \"json\"\n", self.server.uri())
    }

    /// The messages it took, in the order in which they came.
    pub fn messages(&self) -> Vec<Value> {
        self.seen.lock().expect("nobody panics while holding this lock").taken.clone()
    }

    /// How many deliveries it turned away.
    pub fn turned_away(&self) -> usize {
        self.seen.lock().expect("nobody panics while holding this lock").deliveries / TURNED_AWAY
    }
}
