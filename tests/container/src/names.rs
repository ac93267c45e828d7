//! A name server that knows one name.

use std::{
    io,
    net::{IpAddr, Ipv4Addr},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use tokio::{net::UdpSocket, task::AbortHandle};

/// A running server, which ends when it is dropped.
pub struct NameServer {
    was_asked: Arc<AtomicBool>,
    task: AbortHandle,
}

impl NameServer {
    /// Serves the port of DNS at this address: the name leads to the loopback address, other names do not exist.
    ///
    /// # Errors
    /// The port is not free, or only root may use it.
    pub async fn start(address: IpAddr, name: &'static str) -> io::Result<Self> {
        let socket = UdpSocket::bind((address, 53)).await?;
        let was_asked = Arc::new(AtomicBool::new(false));
        let asked = Arc::clone(&was_asked);
        let task = tokio::spawn(async move {
            let mut query = [0; 512];
            loop {
                // An error of an earlier answer, whose receiver has ended, is reported here, too.
                let Ok((length, from)) = socket.recv_from(&mut query).await else { continue };
                if let Some(answer) = query.get(..length).and_then(|query| answer(query, name)) {
                    asked.store(true, Ordering::Relaxed);
                    let _ = socket.send_to(&answer, from).await;
                }
            }
        });
        Ok(Self { was_asked, task: task.abort_handle() })
    }

    /// Whether a query was answered.
    pub fn was_asked(&self) -> bool {
        self.was_asked.load(Ordering::Relaxed)
    }
}

impl Drop for NameServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The answer to a query with one question. <https://www.rfc-editor.org/rfc/rfc1035#section-4.1>
fn answer(query: &[u8], name: &str) -> Option<Vec<u8>> {
    const HEADER: usize = 12;
    let question = query.get(HEADER..)?;
    let end = question.iter().position(|byte| *byte == 0)? + 1;
    let (wanted, question) = (question.get(..end)?, question.get(..end + 4)?);
    let is_known = wanted == encoded(name);
    let asks_for_ipv4 = question.get(end..)? == [0, 1, 0, 1];
    let answers = u8::from(is_known && asks_for_ipv4);
    let mut answer = query.get(..2)?.to_vec();
    // A response without recursion; `NXDOMAIN` for other names. One question, and nothing but answers.
    answer.extend([0x81, if is_known { 0x80 } else { 0x83 }, 0, 1, 0, answers, 0, 0, 0, 0]);
    answer.extend(question);
    if answers == 1 {
        // The name of the question, an address of the internet, valid for a minute.
        answer.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4]);
        answer.extend(Ipv4Addr::LOCALHOST.octets());
    }
    Some(answer)
}

fn encoded(name: &str) -> Vec<u8> {
    let labels = name.split('.').flat_map(|label| {
        let length = u8::try_from(label.len()).expect("a label is short");
        [&[length], label.as_bytes()].concat()
    });
    labels.chain([0]).collect()
}
