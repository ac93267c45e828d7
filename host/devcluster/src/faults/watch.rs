//! The effects of faults on the events of a watch.

use std::time::Duration;

use bytes::Bytes;
use futures::{Stream, StreamExt as _, stream};

use super::{
    effect::When,
    registry::{WatchEnd, WatchStrike},
};
use crate::clock::{Clock, Moment};

/// One event of a watch, as sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Whether it is a bookmark.
    pub bookmark: bool,
    /// The event.
    pub bytes: Bytes,
}

/// The response broke off, or there was none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the connection was reset on purpose")]
pub struct Reset;

struct Disturbed<S> {
    lines: S,
    strike: WatchStrike,
    clock: Clock,
    begin: Moment,
    /// How many events were sent.
    events: u64,
    /// The last event of a watch whose history is compacted.
    expired: Option<Bytes>,
    ended: bool,
}

/// Applies a fault to the events of a watch; `expired` is the ERROR event of [`WatchEnd::Expired`].
pub fn disturb(
    lines: impl Stream<Item = Line> + Send + 'static,
    strike: WatchStrike,
    clock: Clock,
    expired: Bytes,
) -> impl Stream<Item = Result<Line, Reset>> + Send + 'static {
    let begin = clock.moment();
    let state =
        Disturbed { lines: lines.boxed(), strike, clock, begin, events: 0, expired: Some(expired), ended: false };
    stream::unfold(state, |mut state| async move {
        let item = state.next().await?;
        Some((item, state))
    })
}

impl<S: Stream<Item = Line> + Unpin> Disturbed<S> {
    async fn next(&mut self) -> Option<Result<Line, Reset>> {
        if self.ended {
            return None;
        }
        if let Some((When::Events(limit), how)) = self.strike.end
            && self.events >= limit
        {
            return self.end(how);
        }
        let Some((When::Time(time), how)) = self.strike.end else { return self.line().await.map(Ok) };
        let (clock, deadline) = (self.clock.clone(), self.begin + time);
        tokio::select! {
            biased;
            () = clock.sleep_until(deadline) => self.end(how),
            line = self.line() => line.map(Ok),
        }
    }

    /// The next event, after its delay. Cancelling this future ends the watch.
    async fn line(&mut self) -> Option<Line> {
        loop {
            let line = self.lines.next().await?;
            if line.bookmark && self.strike.no_bookmarks {
                continue;
            }
            let delay = if line.bookmark { self.strike.bookmark_delay } else { self.strike.delay };
            if delay > Duration::ZERO {
                self.clock.sleep(delay).await;
            }
            self.events += u64::from(!line.bookmark);
            return Some(line);
        }
    }

    fn end(&mut self, how: WatchEnd) -> Option<Result<Line, Reset>> {
        self.ended = true;
        match how {
            WatchEnd::Dropped => None,
            WatchEnd::Reset => Some(Err(Reset)),
            WatchEnd::Expired => self.expired.take().map(|bytes| Ok(Line { bookmark: false, bytes })),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::task::Poll;

    use futures::{channel::mpsc, poll};
    use time::OffsetDateTime;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn lines(text: &'static str) -> impl Stream<Item = Line> + Send + 'static {
        let line = |event: &'static str| Line { bookmark: event == "B", bytes: Bytes::from_static(event.as_bytes()) };
        stream::iter(text.split_whitespace().map(line))
    }

    /// What a client sees of an endless watch with these events, without waiting.
    async fn outcome(text: &'static str, strike: WatchStrike, clock: &Clock) -> String {
        let endless = lines(text).chain(stream::pending());
        let mut disturbed = Box::pin(disturb(endless, strike, clock.clone(), Bytes::from_static(b"410")));
        let mut seen = Vec::new();
        loop {
            let mut next = disturbed.next();
            seen.push(match poll!(&mut next) {
                Poll::Ready(Some(Ok(line))) => String::from_utf8(line.bytes.to_vec()).unwrap(),
                Poll::Ready(Some(Err(Reset))) => "reset".to_owned(),
                Poll::Ready(None) => return seen.join(" ") + " end",
                Poll::Pending => return seen.join(" ") + " ...",
            });
        }
    }

    #[tokio::test]
    async fn a_watch_ends_as_the_fault_specifies() {
        let clock = Clock::manual(OffsetDateTime::UNIX_EPOCH);
        let ends = |when, how| WatchStrike { end: Some((when, how)), ..WatchStrike::default() };
        let cases = [
            (WatchStrike::default(), "a B b c ..."),
            (ends(When::AT_ONCE, WatchEnd::Dropped), " end"),
            (ends(When::AT_ONCE, WatchEnd::Expired), "410 end"),
            (ends(When::Events(2), WatchEnd::Dropped), "a B b end"),
            (ends(When::Events(2), WatchEnd::Reset), "a B b reset end"),
            (ends(When::Events(2), WatchEnd::Expired), "a B b 410 end"),
            (ends(When::Time(SECOND), WatchEnd::Dropped), "a B b c ..."),
            (ends(When::Time(Duration::ZERO), WatchEnd::Expired), "410 end"),
            (WatchStrike { no_bookmarks: true, ..WatchStrike::default() }, "a b c ..."),
            (WatchStrike { delay: SECOND, ..WatchStrike::default() }, " ..."),
            (WatchStrike { bookmark_delay: SECOND, ..WatchStrike::default() }, "a ..."),
        ];
        for (strike, expected) in cases {
            assert_eq!(outcome("a B b c", strike.clone(), &clock).await, expected, "{strike:?}");
        }
    }

    #[tokio::test]
    async fn delays_and_ends_follow_the_clock() {
        let clock = Clock::manual(OffsetDateTime::UNIX_EPOCH);
        let (sender, lines) = mpsc::unbounded();
        let strike = WatchStrike {
            end: Some((When::Time(10 * SECOND), WatchEnd::Dropped)),
            delay: 2 * SECOND,
            ..WatchStrike::default()
        };
        let mut disturbed = Box::pin(disturb(lines, strike, clock.clone(), Bytes::new()));
        sender.unbounded_send(Line { bookmark: false, bytes: Bytes::from_static(b"a") }).unwrap();
        let mut next = disturbed.next();
        assert_eq!(poll!(&mut next), Poll::Pending);
        clock.advance(SECOND);
        assert_eq!(poll!(&mut next), Poll::Pending);
        clock.advance(SECOND);
        assert!(matches!(poll!(&mut next), Poll::Ready(Some(Ok(_)))));
        let mut next = disturbed.next();
        assert_eq!(poll!(&mut next), Poll::Pending);
        clock.advance(8 * SECOND);
        assert_eq!(poll!(&mut next), Poll::Ready(None));
    }
}
