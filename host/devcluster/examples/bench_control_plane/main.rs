//! Measures a development cluster: memory with many objects and watches, and how long requests take.
//!
//! ```console
//! $ cargo run --release -p chandler-devcluster --example bench_control_plane [-- --objects 10000 --watches 200]
//! ```
//!
//! The server runs in its own process, so that its memory can be measured. Times include TLS and the client.

#![expect(clippy::print_stdout, reason = "a command line program")]

mod load;
mod objects;
mod sample;
mod server;

use std::time::Duration;

use self::{load::Load, server::Server};

type Error = Box<dyn std::error::Error + Send + Sync>;

/// The parameters of the measurement.
struct Scale {
    objects: usize,
    watches: usize,
    requests: usize,
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    let mut arguments = std::env::args().skip(1);
    let mut scale = Scale { objects: 10_000, watches: 200, requests: 2000 };
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or(format!("{argument} needs a value"));
        match argument.as_str() {
            server::ROLE => return server::serve(arguments.next()).await,
            "--objects" => scale.objects = value()?.parse()?,
            "--watches" => scale.watches = value()?.parse()?,
            "--requests" => scale.requests = value()?.parse()?,
            other => return Err(format!("unknown argument {other}").into()),
        }
    }
    println!("in memory");
    measure(&scale, None).await?;
    println!("\non disk (--data)");
    let directory = tempfile::tempdir()?;
    measure(&scale, Some(directory.path())).await?;
    restart(directory.path()).await
}

async fn measure(scale: &Scale, data: Option<&std::path::Path>) -> Result<(), Error> {
    let server = Server::start(data).await?;
    let load = Load::new(&server).await?;
    memory("  when started", &server)?;
    let took = load.fill(scale.objects).await?;
    println!("  {} objects were created in {:.1} s by 16 clients", scale.objects, took.as_secs_f64());
    memory("  with the objects", &server)?;
    let watches = load.watch(scale.watches).await?;
    memory(&format!("  and {} watches", watches.len()), &server)?;
    println!("  {:<34}{:>10}{:>10}{:>10}{:>12}", "latency in ms", "p50", "p99", "most", "per second");
    for clients in [1, 16] {
        load.gets(scale.requests, clients).await?.print(&format!("GET, {clients} at a time"));
        load.lists(scale.requests / 10, clients).await?.print(&format!("list of 500, {clients} at a time"));
        load.selects(scale.requests / 40, clients).await?.print(&format!("list by label, {clients} at a time"));
        load.creates(scale.requests / 2, clients).await?.print(&format!("create, {clients} at a time"));
        load.applies(scale.requests / 2, clients).await?.print(&format!("apply, {clients} at a time"));
    }
    load.fan_out(&watches, scale.requests / 10).await?.print("event at all watches of a kind");
    load.documents(20).await?.print("OpenAPI index after a CRD");
    memory("  at the end", &server)?;
    drop(watches);
    server.stop().await
}

/// How long it takes to start with what was kept.
async fn restart(data: &std::path::Path) -> Result<(), Error> {
    let start = std::time::Instant::now();
    let server = Server::start(Some(data)).await?;
    println!("  started again in {:.2} s", start.elapsed().as_secs_f64());
    memory("  after that", &server)?;
    // The garbage collector has looked at everything then.
    tokio::time::sleep(Duration::from_secs(1)).await;
    memory("  a second later", &server)?;
    server.stop().await
}

fn memory(when: &str, server: &Server) -> Result<(), Error> {
    let (now, most) = server.memory()?;
    println!("{when:<36}{now:>8.1} MB resident, {most:.1} MB at most");
    Ok(())
}
