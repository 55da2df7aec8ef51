//! Requests to a store from code that is not asynchronous, as reading and writing files is not.

use std::io;
use std::sync::OnceLock;
use std::sync::mpsc::sync_channel;

use tokio::runtime::{Builder, Handle, Runtime, RuntimeFlavor};

/// The threads on which requests go on, whatever the caller's own are doing.
static RUNTIME: OnceLock<Runtime> = OnceLock::new();

/// Does some requests and comes back when they are done.
///
/// # Errors
/// When no thread can be started.
pub(super) fn wait<T: Send + 'static>(requests: impl Future<Output = T> + Send + 'static) -> io::Result<T> {
    if RUNTIME.get().is_none() {
        let made = Builder::new_multi_thread().worker_threads(2).thread_name("object store").enable_all().build()?;
        // Another thread may have been quicker, and one of the two is enough.
        if let Err(second) = RUNTIME.set(made) {
            second.shutdown_background();
        }
    }
    let runtime = RUNTIME.get().expect("it was just made");
    let (done, result) = sync_channel(1);
    runtime.spawn(async move {
        // Nobody waits any more when the program is about to end.
        let _ = done.send(requests.await);
    });
    let receive = || result.recv().map_err(|_| io::Error::other("the request was given up"));
    match Handle::try_current().map(|handle| handle.runtime_flavor()) {
        // Pages go on arriving on the other threads meanwhile.
        Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(receive),
        _ => receive(),
    }
}
