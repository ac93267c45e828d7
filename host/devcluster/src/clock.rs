//! Time, as Kubernetes writes it.

use time::{OffsetDateTime, UtcOffset, format_description::well_known::Rfc3339};

/// Now, RFC 3339 in UTC with whole seconds.
pub fn now() -> String {
    seconds(OffsetDateTime::now_utc())
}

/// A time, RFC 3339 in UTC with whole seconds.
pub fn seconds(time: OffsetDateTime) -> String {
    let whole = time.to_offset(UtcOffset::UTC).replace_nanosecond(0).unwrap_or(time);
    // Fails only for years beyond 9999.
    whole.format(&Rfc3339).unwrap_or_default()
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
    use time::Duration;

    use super::*;

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
            assert_eq!(age(now - Duration::seconds(seconds), now), expected);
        }
    }
}
