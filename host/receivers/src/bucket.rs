//! How often a Receiver may wake sources.

use std::time::Duration;

/// The most requests in one minute that wake sources, and the most at once.
pub const PER_MINUTE: u32 = 60;
/// The time after which one more is allowed.
const PAUSE: Duration = Duration::from_secs(60 / PER_MINUTE as u64);

/// A token bucket. The clock comes in as an argument: the time since any fixed beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bucket {
    /// When the bucket is full again. Full at the beginning.
    full_at: Duration,
}

impl Bucket {
    /// Takes one, or returns after how long there is one.
    ///
    /// # Errors
    /// It is empty.
    pub fn take(&mut self, now: Duration) -> Result<(), Duration> {
        let next = self.full_at.max(now).saturating_add(PAUSE);
        let most = now.saturating_add(PAUSE.saturating_mul(PER_MINUTE));
        if next > most {
            return Err(next.saturating_sub(most));
        }
        self.full_at = next;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_is_allowed_and_then_one_at_a_time() {
        let (mut bucket, start) = (Bucket::default(), Duration::from_secs(100));
        for _ in 0..PER_MINUTE {
            assert_eq!(bucket.take(start), Ok(()));
        }
        assert_eq!(bucket.take(start), Err(PAUSE));
        assert_eq!(bucket.take(start + PAUSE / 2), Err(PAUSE / 2));
        assert_eq!(bucket.take(start + PAUSE), Ok(()));
        assert_eq!(bucket.take(start + PAUSE), Err(PAUSE));
        let later = start + Duration::from_mins(10);
        assert_eq!((0..1000).filter(|_| bucket.take(later).is_ok()).count(), PER_MINUTE as usize);
    }
}
