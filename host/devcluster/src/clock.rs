//! Time: the current time of a development cluster, waiting, and Kubernetes' time format.

use std::{
    ops::Add,
    sync::{Arc, LazyLock},
    time::Duration,
};

use time::{OffsetDateTime, UtcOffset, format_description::well_known::Rfc3339, macros::format_description};
use tokio::{sync::watch, time::Instant};

/// The clock of a development cluster. Clones show the same time.
///
/// Everything that an object, a table or a timer of a controller says about time comes from here, so that a test which moves
/// a [manual](Self::manual) clock sees the same bytes in every run. Limits of connections and requests are about the real
/// world and do not come from here.
#[derive(Clone, Debug, Default)]
pub struct Clock(Source);

#[derive(Clone, Debug, Default)]
enum Source {
    #[default]
    System,
    Manual(Arc<Manual>),
}

#[derive(Debug)]
struct Manual {
    start: OffsetDateTime,
    /// Since the start.
    elapsed: watch::Sender<Duration>,
}

/// A point on a clock that never goes back, for timers: later moments are greater. Moments of different clocks say nothing
/// about each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(Duration);

impl Add<Duration> for Moment {
    type Output = Self;

    /// The moment later by this duration, or the last possible one.
    fn add(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(duration))
    }
}

/// Where the system clock's moments begin.
static BEGIN: LazyLock<Instant> = LazyLock::new(Instant::now);

impl Clock {
    /// The machine's time.
    pub fn system() -> Self {
        Self(Source::System)
    }

    /// A clock that stays at `start` until it is moved by [`advance`](Self::advance).
    pub fn manual(start: OffsetDateTime) -> Self {
        Self(Source::Manual(Arc::new(Manual { start, elapsed: watch::Sender::new(Duration::ZERO) })))
    }

    /// Now.
    pub fn now(&self) -> OffsetDateTime {
        match &self.0 {
            Source::System => OffsetDateTime::now_utc(),
            Source::Manual(manual) => manual
                .start
                .saturating_add(time::Duration::try_from(*manual.elapsed.borrow()).unwrap_or(time::Duration::MAX)),
        }
    }

    /// Now as a `Time` of the API: RFC 3339 in UTC with whole seconds.
    pub fn timestamp(&self) -> String {
        seconds(self.now())
    }

    /// Now as a `MicroTime` of the API: RFC 3339 in UTC with six digits behind the point.
    pub fn micro_timestamp(&self) -> String {
        microseconds(self.now())
    }

    /// Now, for timers.
    pub fn moment(&self) -> Moment {
        match &self.0 {
            Source::System => Moment(BEGIN.elapsed()),
            Source::Manual(manual) => Moment(*manual.elapsed.borrow()),
        }
    }

    /// Waits until a moment. Cancelling loses nothing.
    pub async fn sleep_until(&self, moment: Moment) {
        match &self.0 {
            Source::System => match BEGIN.checked_add(moment.0) {
                Some(instant) => tokio::time::sleep_until(instant).await,
                None => std::future::pending().await,
            },
            Source::Manual(manual) => {
                // The sender lives as long as this clock, so that waiting cannot fail.
                let _ = manual.elapsed.subscribe().wait_for(|elapsed| *elapsed >= moment.0).await;
            }
        }
    }

    /// Waits for so long.
    pub async fn sleep(&self, duration: Duration) {
        self.sleep_until(self.moment() + duration).await;
    }

    /// Moves a manual clock forward and wakes its waiters. Does nothing to the system clock.
    pub fn advance(&self, by: Duration) {
        if let Source::Manual(manual) = &self.0 {
            manual.elapsed.send_modify(|elapsed| *elapsed = elapsed.saturating_add(by));
        }
    }
}

/// A time, RFC 3339 in UTC with whole seconds.
pub fn seconds(time: OffsetDateTime) -> String {
    let whole = time.to_offset(UtcOffset::UTC).replace_nanosecond(0).unwrap_or(time);
    // Fails only for years beyond 9999.
    whole.format(&Rfc3339).unwrap_or_default()
}

/// A time, RFC 3339 in UTC with six digits behind the point.
pub fn microseconds(time: OffsetDateTime) -> String {
    let format = format_description!("[year]-[month]-[day]T[hour]:[minute]:[second].[subsecond digits:6]Z");
    time.to_offset(UtcOffset::UTC).format(&format).unwrap_or_default()
}

/// Reads RFC 3339.
pub fn parse(text: &str) -> Option<OffsetDateTime> {
    OffsetDateTime::parse(text, &Rfc3339).ok()
}

/// How long ago, as kubectl prints it (`k8s.io/apimachinery/pkg/util/duration.HumanDuration`): two units at most.
pub fn age(of: OffsetDateTime, now: OffsetDateTime) -> String {
    let seconds = (now - of).whole_seconds();
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    let two = |large: i64, unit: &str, small: i64, small_unit: &str| {
        if small == 0 { format!("{large}{unit}") } else { format!("{large}{unit}{small}{small_unit}") }
    };
    match seconds {
        ..-1 => "<invalid>".to_owned(),
        -1..0 => "0s".to_owned(),
        0..120 => format!("{seconds}s"),
        120..600 => two(minutes, "m", seconds % 60, "s"),
        600..10_800 => format!("{minutes}m"),
        10_800..28_800 => two(hours, "h", minutes % 60, "m"),
        28_800..172_800 => format!("{hours}h"),
        172_800..691_200 => two(days, "d", hours % 24, "h"),
        691_200..63_072_000 => format!("{days}d"),
        63_072_000..252_288_000 => two(days / 365, "y", days % 365, "d"),
        _ => format!("{}y", days / 365),
    }
}

#[cfg(test)]
mod tests {
    use std::task::Poll;

    use time::macros::datetime;

    use super::*;

    #[test]
    fn a_manual_clock_does_not_move_by_itself() {
        let clock = Clock::manual(datetime!(2026-01-02 03:04:05.678_901_2 UTC));
        assert_eq!(
            (clock.timestamp(), clock.timestamp()),
            ("2026-01-02T03:04:05Z".into(), "2026-01-02T03:04:05Z".into())
        );
        assert_eq!(clock.micro_timestamp(), "2026-01-02T03:04:05.678901Z");
        let (shared, before) = (clock.clone(), clock.moment());
        shared.advance(Duration::from_mins(61));
        assert_eq!(clock.timestamp(), "2026-01-02T04:05:05Z");
        assert_eq!(clock.moment(), before + Duration::from_mins(61));
        clock.advance(Duration::MAX);
        assert!(clock.moment() > before);
    }

    #[tokio::test]
    async fn a_sleeper_wakes_when_the_manual_clock_is_moved_far_enough() {
        let clock = Clock::manual(OffsetDateTime::UNIX_EPOCH);
        let mut sleep = Box::pin(clock.sleep(Duration::from_secs(10)));
        assert_eq!(futures::poll!(&mut sleep), Poll::Pending);
        clock.advance(Duration::from_secs(9));
        assert_eq!(futures::poll!(&mut sleep), Poll::Pending);
        clock.advance(Duration::from_secs(1));
        assert_eq!(futures::poll!(&mut sleep), Poll::Ready(()));
    }

    #[tokio::test]
    async fn the_system_clock_passes_by_itself() {
        let clock = Clock::default();
        let before = clock.moment();
        clock.sleep(Duration::from_millis(1)).await;
        assert!(clock.moment() >= before + Duration::from_millis(1));
        clock.advance(Duration::from_hours(10_000));
        assert!(clock.moment() < before + Duration::from_hours(1));
    }

    #[test]
    fn ages_read_as_kubectl_prints_them() {
        let now = OffsetDateTime::from_unix_timestamp(1_700_000_000).unwrap();
        let cases = [
            (0, "0s"),
            (119, "119s"),
            (150, "2m30s"),
            (180, "3m"),
            (599, "9m59s"),
            (3600, "60m"),
            (11_400, "3h10m"),
            (36_000, "10h"),
            (180_000, "2d2h"),
            (864_000, "10d"),
            (63_072_000 + 86_400, "2y1d"),
            (315_360_000, "10y"),
        ];
        for (seconds, expected) in cases {
            assert_eq!(age(now - time::Duration::seconds(seconds), now), expected);
        }
    }
}
