//! A process without free file descriptors says so, and does not blame the API server.
//!
//! This is a binary of its own, with one test, because it lowers the limit of its process.

#![expect(clippy::unwrap_used, reason = "a test that cannot continue must fail")]

use std::{
    fs::File,
    io::{self, Write},
    os::fd::AsRawFd as _,
    sync::{Arc, Mutex},
    time::Duration,
};

use chandler_client::monitored;
use chandler_core::descriptors_exhausted;
use chandler_runtime::{Election, ElectionError, leadership, while_leader};
use kube::Config;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::{net::TcpListener, sync::oneshot};

/// Leaves this process no free file descriptor.
fn exhaust() {
    // The lowest that is free; all below are in use.
    let free = File::open("/dev/null").unwrap();
    let limit = u64::try_from(free.as_raw_fd()).unwrap();
    setrlimit(Resource::Nofile, Rlimit { current: Some(limit), ..getrlimit(Resource::Nofile) }).unwrap();
}

/// The lines of the log.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().unwrap()).into_owned()
    }

    async fn says(&self, text: &str) {
        let said = async {
            while !self.text().contains(text) {
                tokio::task::yield_now().await;
            }
        };
        let said = tokio::time::timeout(Duration::from_mins(1), said).await;
        assert!(said.is_ok(), "{text:?} is not in: {}", self.text());
    }
}

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn the_log_and_the_errors_name_the_exhausted_file_descriptors() {
    let log = Log::default();
    let writer = log.clone();
    tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone()).init();
    // A server that listens, so that only a descriptor is missing.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = format!("http://{}", listener.local_addr().unwrap());
    let config = Config::new(server.parse().unwrap());
    let (client, availability) = monitored(&chandler_client::client(config.clone()).unwrap());
    let unlimited = getrlimit(Resource::Nofile);

    // The thread of the election has its runtime when it connects.
    let (stop, stopped) = oneshot::channel::<()>();
    let election = Election::new(
        move || {
            let client = chandler_client::client(config.clone());
            exhaust();
            client
        },
        "n",
        "l",
        "me".to_owned(),
    );
    let shutdown = leadership::shutdown(async {
        let _ = stopped.await;
    });
    let waiting =
        tokio::spawn(async move { while_leader(&election, shutdown, |_, _| std::future::pending::<()>()).await });
    log.says("this controller waits until it is the leader").await;
    let limit = getrlimit(Resource::Nofile).current.unwrap();
    let exhausted = format!("this process has used all of its {limit} file descriptors");
    assert!(log.text().contains(&exhausted), "{}", log.text());

    let error = client.apiserver_version().await.unwrap_err();
    assert!(descriptors_exhausted(&error).unwrap().to_string().starts_with(&exhausted), "{error:?}");
    log.says("no request reaches the API server: this process has used all").await;
    assert!(availability.is_down() && !log.text().contains("does not answer"), "{}", log.text());

    // A second election cannot even start its thread.
    let second = Election::new(|| unreachable!("it has no runtime"), "n", "l", "me".to_owned());
    let never = leadership::shutdown(std::future::pending());
    match while_leader(&second, never, |_, _| std::future::ready(())).await {
        Err(error @ ElectionError::Thread(_)) => assert!(descriptors_exhausted(&error).is_some(), "{error:?}"),
        other => panic!("{other:?}"),
    }
    setrlimit(Resource::Nofile, unlimited).unwrap();
    drop(stop);
    assert!(waiting.await.unwrap().unwrap().is_none());
    drop(listener);
}
