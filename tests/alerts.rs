//! What a night tells people, against real servers on this machine: what is told and in which form, once, in a bounded time,
//! and without its address anywhere.

use std::process::Command;
use std::time::{Duration, Instant};

use crate::support::nightly::Nights;
use crate::support::rough::{count, nobody, rough_server, send};
use crate::support::{all_files, bytes_of};
use gpuledger::alerts::{Alerts, Delivered, LINES_MAX, Limits, NightEnd, after_night_within};
use gpuledger::exit::Exit;
use gpuledger::log::{self, LogForm};
use gpuledger::run::Night;
use serde_json::{Value, json};
use wiremock::matchers::path;
use wiremock::{Mock, MockServer, ResponseTemplate};

const LIMITS: Limits = Limits { whole: Duration::from_secs(20), first_wait: Duration::from_millis(5) };

fn alerts(text: &str) -> Alerts {
    toml::from_str(text).unwrap_or_else(|error| panic!("{error}"))
}

/// A table with one webhook.
fn one(url: &str, form: &str, more: &str) -> Alerts {
    alerts(&format!("{more}\n[[webhooks]]\nurl = \"{url}\"\nform = \"{form}\"\n"))
}

fn end_of(nights: &Nights, night: &Night) -> NightEnd {
    NightEnd {
        output: nights.dataset.root(),
        schedule: "nightly".to_owned(),
        due_at: night.snapshot.instant(),
        exit: night.exit,
        snapshot: Some(night.snapshot),
        reason: None,
    }
}

async fn told(alerts: &Alerts, nights: &Nights, night: &Night) -> Vec<Delivered> {
    after_night_within(alerts, &end_of(nights, night), LIMITS).await
}

fn outcomes(told: &[Delivered]) -> Vec<(&str, &str)> {
    told.iter().map(|delivered| (delivered.kind.word(), delivered.outcome.as_str())).collect()
}

async fn server(status: u16) -> MockServer {
    let server = MockServer::start().await;
    Mock::given(path("/hook")).respond_with(ResponseTemplate::new(status)).mount(&server).await;
    server
}

async fn bodies(server: &MockServer) -> Vec<Value> {
    let requests = server.received_requests().await.expect("the server keeps its requests");
    requests.iter().map(|request| serde_json::from_slice(&request.body).expect("it is JSON")).collect()
}

fn cheaper(text: String) -> String {
    assert!(text.contains("$3.99"));
    text.replace("$3.99", "$3.59")
}

/// Every price on a page with another last digit.
fn another_last_digit(page: &str) -> String {
    let mut parts = page.split('$');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(part.len());
        let (price, rest) = part.split_at(end);
        text += &match price.split_at_checked(price.len().saturating_sub(1)) {
            Some((start, "0")) => format!("${start}1{rest}"),
            Some((start, last)) if !last.is_empty() => {
                format!("${start}{}{rest}", last.parse::<u8>().map_or(0, |digit| digit - 1))
            }
            _ => format!("${part}"),
        };
    }
    text
}

/// Two nights, of which the second has one price less.
async fn a_change(nights: &Nights) -> Night {
    nights.night("2026-11-01T02:00:00Z").await;
    nights.publishes("lambda", cheaper);
    nights.night("2026-11-02T02:00:00Z").await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_price_change_is_told_once_to_every_webhook_in_its_own_form() {
    let (nights, server) = (Nights::new(), MockServer::start().await);
    Mock::given(path("/feishu"))
        .respond_with(ResponseTemplate::new(200).set_body_json(json!({ "code": 0 })))
        .mount(&server)
        .await;
    Mock::given(path("/dingtalk"))
        .respond_with(ResponseTemplate::new(200).set_body_json(json!({ "errcode": 0 })))
        .mount(&server)
        .await;
    Mock::given(wiremock::matchers::any()).respond_with(ResponseTemplate::new(200)).with_priority(9).mount(&server).await;
    let hooks: String = ["json", "slack", "feishu", "dingtalk"]
        .map(|form| format!("[[webhooks]]\nurl = \"{}/{form}\"\nform = \"{form}\"\n", server.uri()))
        .concat();
    let alerts = alerts(&hooks);
    let night = a_change(&nights).await;
    let first = told(&alerts, &nights, &night).await;
    assert_eq!(outcomes(&first), [("price_changes", "delivered"); 4], "{first:?}");
    let requests = server.received_requests().await.expect("the server keeps its requests");
    let of = |form: &str| {
        let request = requests.iter().find(|request| request.url.path() == format!("/{form}")).expect("it was asked");
        let id = request.headers.get("idempotency-key").and_then(|id| id.to_str().ok()).map(str::to_owned);
        assert_eq!(id.as_deref(), Some("gpuledger/nightly/2026-11-02T02-00-00Z/price_changes"));
        serde_json::from_slice::<Value>(&request.body).expect("it is JSON")
    };
    let json = of("json");
    assert_eq!((&json["kind"], &json["schedule"], &json["more"]), (&json!("price_changes"), &json!("nightly"), &json!(0)));
    let change = &json["changes"][0];
    assert_eq!((&change["amount_before"], &change["amount_now"]), (&json!("3.99"), &json!("3.59")), "{json}");
    assert_eq!((&change["provider"], &change["currency_code"]), (&json!("lambda"), &json!("USD")));
    let text = json["text"].as_str().expect("it has text");
    assert!(
        text.starts_with("gpuledger: one price of lambda changed") && text.contains("3.99 → 3.59 USD per hour (−10.0 %)"),
        "{text}"
    );
    assert_eq!(of("slack"), json!({ "text": text }));
    assert_eq!(of("feishu"), json!({ "msg_type": "text", "content": { "text": text } }));
    assert_eq!(of("dingtalk")["text"]["content"], json!(text));
    assert_eq!(told(&alerts, &nights, &night).await, []);
    let next = nights.night("2026-11-03T02:00:00Z").await;
    assert_eq!(told(&alerts, &nights, &next).await, []);
    assert_eq!(bodies(&server).await.len(), 4);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_no_change_of_a_source_or_too_small_is_not_told() {
    let nights = Nights::new();
    let night = a_change(&nights).await;
    for (index, (more, is_told)) in [
        ("", true),
        ("min_change_percent = 10", true),
        ("min_change_percent = 10.1", false),
        ("min_change_percent = 50\nmin_change_percent_of_provider = { lambda = 5 }", true),
        ("min_change_percent_of_provider = { lambda = 50 }", false),
        ("min_change_percent = 50\nmin_change_percent_of_gpu = { h100 = 5 }", true),
        ("min_change_percent_of_gpu = { h100 = 5, \"H100 SXM\" = 50 }", false),
        ("min_change_percent_of_provider = { lambda = 50 }\nmin_change_percent_of_gpu = { h100 = 5 }", true),
        ("tell = [\"failed_night\", \"missing_provider\"]", false),
    ]
    .into_iter()
    .enumerate()
    {
        // Each schedule has its own list of what was told.
        let (server, end) = (server(200).await, NightEnd { schedule: format!("of rule {index}"), ..end_of(&nights, &night) });
        let told = after_night_within(&one(&format!("{}/hook", server.uri()), "json", more), &end, LIMITS).await;
        assert_eq!((told.len(), bodies(&server).await.len()), if is_told { (1, 1) } else { (0, 0) }, "{more}");
    }
    let (nights, server) = (Nights::new(), server(200).await);
    nights.publishes("seeweb", |text| text);
    nights.night("2026-11-01T02:00:00Z").await;
    nights.publishes("ecb", |text| text.replace("rate='1.1172'", "rate='1.2172'"));
    let night = nights.night("2026-11-02T02:00:00Z").await;
    assert_eq!(told(&one(&format!("{}/hook", server.uri()), "json", ""), &nights, &night).await, []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_has_a_bounded_size_and_says_how_many_more_there_are() {
    let (nights, server) = (Nights::new(), server(200).await);
    nights.night("2026-11-01T02:00:00Z").await;
    nights.publishes("lambda", |text| another_last_digit(&text));
    nights.publishes("modal", |text| another_last_digit(&text));
    let night = nights.night("2026-11-02T02:00:00Z").await;
    told(&one(&format!("{}/hook", server.uri()), "json", "min_change_percent = 0"), &nights, &night).await;
    let bodies = bodies(&server).await;
    let body = bodies.first().unwrap_or_else(|| panic!("nothing was told of {:?}", night.record));
    let (lines, more) = (body["lines"].as_array().expect("a list").len(), body["more"].as_u64().expect("a number"));
    assert!(lines == LINES_MAX && more > 0, "{lines} and {more} more");
    let text = body["text"].as_str().expect("it has text");
    assert!(text.ends_with(&format!("… and {more} more")) && text.len() < 6_000, "{text}");
    assert_eq!(body["changes"].as_array().map(Vec::len), Some(LINES_MAX));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_with_a_fault_is_tried_three_times_and_told_the_next_night_what_it_missed() {
    let (nights, server) = (Nights::new(), MockServer::start().await);
    Mock::given(path("/hook")).respond_with(ResponseTemplate::new(503)).up_to_n_times(3).with_priority(1).mount(&server).await;
    Mock::given(path("/hook")).respond_with(ResponseTemplate::new(200)).mount(&server).await;
    let alerts = one(&format!("{}/hook", server.uri()), "json", "");
    let night = a_change(&nights).await;
    let first = told(&alerts, &nights, &night).await;
    assert_eq!((outcomes(&first), first[0].tries), (vec![("price_changes", "waiting")], 3));
    assert_eq!(first[0].reason.as_deref(), Some("it answered 503"));
    let record = std::fs::read_to_string(nights.file("runs/2026-11-02T02-00-00Z.alerts.json")).expect("there is a record");
    assert!(record.contains("\"waiting\"") && record.contains("it answered 503"), "{record}");
    let said = nights.dataset.run(&["runs", "2026-11-02"]);
    assert!(said.data.contains("alert price_changes to ") && said.data.contains("waiting, tried 3 times"), "{}", said.data);
    let next = nights.night("2026-11-03T02:00:00Z").await;
    assert_eq!(outcomes(&told(&alerts, &nights, &next).await), [("price_changes", "delivered")]);
    let bodies = bodies(&server).await;
    assert!(bodies.len() == 4 && bodies.iter().all(|body| body["id"] == bodies[0]["id"]), "{bodies:?}");
    let spool = std::fs::read_to_string(nights.file("alerts/nightly.json")).expect("there is a spool");
    assert!(spool.contains("\"waiting\": []"), "{spool}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_another_try_cannot_mend_is_tried_once_and_waits() {
    for (answer, reason) in [
        (ResponseTemplate::new(404), "it answered 404"),
        (
            ResponseTemplate::new(200).set_body_json(json!({ "code": 19024, "msg": "Key Words Not Found" })),
            "refused the message with code 19024",
        ),
        (ResponseTemplate::new(503).insert_header("retry-after", "3600"), "it answered 503"),
    ] {
        let (nights, server) = (Nights::new(), MockServer::start().await);
        Mock::given(path("/hook")).respond_with(answer).mount(&server).await;
        let night = a_change(&nights).await;
        let told = told(&one(&format!("{}/hook", server.uri()), "feishu", ""), &nights, &night).await;
        assert_eq!((outcomes(&told), told[0].tries), (vec![("price_changes", "waiting")], 1), "{reason}");
        assert!(told[0].reason.as_ref().is_some_and(|told| told.contains(reason)), "{:?}", told[0].reason);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_never_answers_holds_the_night_up_for_a_bounded_time() {
    let nights = Nights::new();
    let (address, asked) = rough_server(|_, _| {
        std::thread::sleep(Duration::from_secs(30));
        Ok(())
    });
    // One that answers with no end is as bad.
    let (endless, _) = rough_server(|_, stream| {
        send(stream, "content-length: 1000000000\r\n", b"{")?;
        std::thread::sleep(Duration::from_secs(30));
        Ok(())
    });
    let other = server(200).await;
    let hooks: String =
        [format!("{address}/hook"), format!("{endless}/hook"), format!("{}/hook", other.uri()), format!("{}/hook", nobody())]
            .map(|url| format!("[[webhooks]]\nurl = \"{url}\"\nform = \"json\"\n"))
            .concat();
    let night = a_change(&nights).await;
    let limits = Limits { whole: Duration::from_secs(2), ..LIMITS };
    let began = Instant::now();
    let told = after_night_within(&alerts(&hooks), &end_of(&nights, &night), limits).await;
    assert!(began.elapsed() < Duration::from_secs(5), "it took {:?}", began.elapsed());
    let delivered: Vec<&str> = told.iter().filter(|told| told.outcome == "delivered").map(|told| told.webhook.as_str()).collect();
    assert!(told.len() == 4 && delivered.len() == 1 && delivered[0].starts_with(&other.uri()), "{told:?}");
    assert_eq!(count(&asked), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redirect_is_not_followed() {
    let (nights, elsewhere, server) = (Nights::new(), server(200).await, MockServer::start().await);
    let to = format!("{}/hook", elsewhere.uri());
    Mock::given(path("/hook"))
        .respond_with(ResponseTemplate::new(307).insert_header("location", to.as_str()))
        .mount(&server)
        .await;
    let night = a_change(&nights).await;
    let told = told(&one(&format!("{}/hook", server.uri()), "slack", ""), &nights, &night).await;
    assert_eq!(told[0].reason.as_deref(), Some("it answered 307, and redirects are not followed"));
    assert_eq!(bodies(&elsewhere).await, Vec::<Value>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_night_that_failed_is_told_once_however_often_it_is_tried() {
    let (nights, server) = (Nights::new(), server(200).await);
    let alerts = one(&format!("{}/hook", server.uri()), "json", "");
    nights.is_broken("lambda");
    nights.is_broken("modal");
    let night = nights.night("2026-11-01T02:00:00Z").await;
    let mut end = NightEnd { reason: Some("no provider \u{1b}[2J was complete".to_owned()), ..end_of(&nights, &night) };
    for _ in 0..2 {
        after_night_within(&alerts, &end, LIMITS).await;
    }
    let first = &bodies(&server).await[0];
    let text = first["text"].as_str().expect("it has text");
    assert!(text.contains("was due at 2026-11-01T02:00:00Z published nothing") && text.contains("exit code 11"), "{text}");
    assert!(text.contains("lambda: failed") && text.contains("\\u{1b}[2J was complete"), "{text}");
    // One that did not come so far as to have a snapshot, and one on which nothing was due.
    end = NightEnd { due_at: "2026-11-02T02:00:00Z".parse().expect("a time"), snapshot: None, exit: Exit::Locked, ..end };
    after_night_within(&alerts, &end, LIMITS).await;
    end = NightEnd { due_at: "2026-11-03T02:00:00Z".parse().expect("a time"), exit: Exit::NothingDue, ..end };
    after_night_within(&alerts, &end, LIMITS).await;
    assert_eq!(bodies(&server).await.len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_provider_that_stays_away_is_told_once() {
    let (nights, server) = (Nights::new(), server(200).await);
    let alerts = one(&format!("{}/hook", server.uri()), "json", "missing_nights = 2");
    nights.night("2026-11-01T02:00:00Z").await;
    nights.is_broken("modal");
    for (day, expected) in [(2, 0), (3, 1), (4, 1)] {
        let night = nights.night(&format!("2026-11-0{day}T02:00:00Z")).await;
        told(&alerts, &nights, &night).await;
        assert_eq!(bodies(&server).await.len(), expected, "day {day}");
    }
    let text = bodies(&server).await[0]["text"].as_str().expect("it has text").to_owned();
    assert!(text.contains("modal: not in the last 2 nights, last in 2026-11-01T02-00-00Z"), "{text}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nights_that_were_not_told_are_told_with_the_next() {
    let (nights, server) = (Nights::new(), server(200).await);
    let alerts = one(&format!("{}/hook", server.uri()), "json", "");
    let first = nights.night("2026-11-01T02:00:00Z").await;
    told(&alerts, &nights, &first).await;
    // This one dies after it has published.
    nights.publishes("lambda", cheaper);
    nights.night("2026-11-02T02:00:00Z").await;
    let third = nights.night("2026-11-03T02:00:00Z").await;
    let late = told(&alerts, &nights, &third).await;
    assert_eq!(outcomes(&late), [("price_changes", "delivered")]);
    assert!(late[0].alert_id.contains("2026-11-02T02-00-00Z"), "{late:?}");
    // Where the list is damaged, tonight alone is told.
    std::fs::write(nights.file("alerts/nightly.json"), "{").expect("there is room for a file");
    assert_eq!(told(&alerts, &nights, &third).await, []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_that_could_not_be_told_for_a_week_is_given_up() {
    let nights = Nights::new();
    let alerts = one(&format!("{}/hook", nobody()), "json", "");
    let night = a_change(&nights).await;
    assert_eq!(outcomes(&told(&alerts, &nights, &night).await), [("price_changes", "waiting")]);
    let path = nights.file("alerts/nightly.json");
    let mut spool: Value = serde_json::from_slice(&bytes_of(&path)).expect("it is JSON");
    spool["waiting"][0]["alert"]["at"] = json!("2026-01-01T00:00:00Z");
    std::fs::write(&path, spool.to_string()).expect("there is room for a file");
    let told = told(&alerts, &nights, &night).await;
    assert_eq!(outcomes(&told), [("price_changes", "given_up")]);
    assert!(told[0].reason.as_ref().is_some_and(|reason| reason.contains("for 7 days")), "{told:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_that_goes_wrong_with_alerts_is_a_fault_of_the_night() {
    let (nights, server) = (Nights::new(), server(200).await);
    let alerts = one(&format!("{}/hook", server.uri()), "json", "");
    let night = a_change(&nights).await;
    std::fs::write(nights.file("alerts"), "a file in the way").expect("there is room for a file");
    assert_eq!(told(&alerts, &nights, &night).await, []);
    std::fs::remove_file(nights.file("alerts")).expect("it can be removed");
    assert_eq!(outcomes(&told(&alerts, &nights, &night).await), [("price_changes", "delivered")]);
}

#[test]
fn a_table_that_means_nothing_is_refused_and_never_shows_a_secret() {
    for (text, told) in [
        ("webhook = []", "unknown field"),
        ("[[webhooks]]\nurl_env = \"A\"", "form"),
        ("[[webhooks]]\nurl_env = \"A\"\nform = \"teams\"", "teams"),
        ("[[webhooks]]\nform = \"json\"", "either `url_env` or `url`"),
        ("[[webhooks]]\nurl_env = \"A\"\nurl = \"http://localhost/\"\nform = \"json\"", "either `url_env` or `url`"),
        ("[[webhooks]]\nurl = \"https://hooks.slack.com/services/T0/B0/s3cr3t\"\nform = \"slack\"", "a secret"),
        (
            "[[webhooks]]\nurl_env = \"https://hooks.slack.com/services/T0/B0/s3cr3t\"\nform = \"slack\"",
            "the name of an environment",
        ),
        ("[[webhooks]]\nurl = \"file:///etc/s3cr3t\"\nform = \"json\"", "no address of the web"),
        ("[[webhooks]]\nurl = \"http://me:s3cr3t@localhost/\"\nform = \"json\"", "a user name or a password"),
        ("min_change_percent = -1", "from 0 on"),
        ("min_change_percent = nan", "from 0 on"),
        ("min_change_percent_of_gpu = { h1000 = 1 }", "h1000"),
        ("min_change_percent_of_provider = { acme = 1 }", "there is no provider `acme`"),
        ("missing_nights = 0", "from 1 to 365"),
        ("tell = [\"everything\"]", "everything"),
    ] {
        let error = toml::from_str::<Alerts>(text).expect_err(text);
        assert!(error.message().contains(told), "{text}: {}", error.message());
        assert!(!error.message().contains("s3cr3t"), "{}", error.message());
    }
    assert_eq!(toml::from_str::<Alerts>("").expect("it reads"), Alerts::default());
}

const SECRET: &str = "T0SECRET/B0SECRET/xoxSECRETxox";

/// What the next test runs as a process of its own, with the secret in its environment.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "another test runs it"]
async fn a_process_with_a_secret() {
    log::choose(LogForm::Plain);
    let nights = Nights::new();
    let night = a_change(&nights).await;
    let alerts = alerts("[[webhooks]]\nurl_env = \"GPULEDGER_TEST_HOOK\"\nform = \"json\"");
    for _ in 0..2 {
        eprintln!("{:?}", told(&alerts, &nights, &night).await);
    }
    for file in all_files(&nights.dataset.root()) {
        let text = String::from_utf8_lossy(&bytes_of(&file)).into_owned();
        assert!(!text.contains("SECRET"), "{}", file.display());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_address_that_is_a_secret_goes_to_its_server_and_nowhere_else() {
    let echo = MockServer::start().await;
    let body = format!("no such hook: /services/{SECRET}");
    Mock::given(wiremock::matchers::any()).respond_with(ResponseTemplate::new(403).set_body_string(body)).mount(&echo).await;
    let moved = MockServer::start().await;
    let to = format!("https://elsewhere.example/services/{SECRET}");
    Mock::given(wiremock::matchers::any())
        .respond_with(ResponseTemplate::new(302).insert_header("location", to.as_str()))
        .mount(&moved)
        .await;
    for (hook, told) in [
        (format!("{}/services/{SECRET}", echo.uri()), "it answered 403"),
        (format!("{}/services/{SECRET}", moved.uri()), "it answered 302"),
        (format!("{}/services/{SECRET}", nobody()), "cannot connect"),
        (format!("http://example.com/services/{SECRET}"), "use https"),
        (format!("services/{SECRET}"), "is no address"),
        (format!("https://me:{}@127.0.0.1/", SECRET.replace('/', "")), "a user name or a password"),
        (String::new(), "is no address"),
    ] {
        let mut command = Command::new(std::env::current_exe().expect("this test is a program"));
        command
            .args(["--exact", "alerts::a_process_with_a_secret", "--ignored", "--nocapture"])
            .env("GPULEDGER_TEST_HOOK", &hook);
        let output = tokio::task::spawn_blocking(move || command.output()).await.expect("it runs").expect("it starts");
        let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        assert!(output.status.success() && said.contains(told), "{told}: {said}");
        assert!(!said.contains("SECRET"), "{said}");
    }
    assert_eq!(echo.received_requests().await.map_or(0, |requests| requests.len()), 2);
}
