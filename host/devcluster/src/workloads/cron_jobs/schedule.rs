//! Cron schedules of five fields, in UTC, as `robfig/cron` reads them for kube-controller-manager.

use time::{Date, Duration, OffsetDateTime, Time};

/// How far a schedule is followed: a day that never comes (the 30th of February) ends the search.
const FARTHEST: i64 = 366 * 9;

const MONTHS: &[&str] = &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const DAYS: &[&str] = &["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

/// The scheduled times: a bit for each minute, hour, day and month.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Schedule {
    minutes: u64,
    hours: u64,
    days: u64,
    months: u64,
    weekdays: u64,
    /// With both kinds of days restricted, either will do.
    either_day: bool,
}

impl Schedule {
    /// Reads a schedule.
    ///
    /// # Errors
    /// If the schedule is invalid; the error says why.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let expanded = match text.trim() {
            "@yearly" | "@annually" => "0 0 1 1 *",
            "@monthly" => "0 0 1 * *",
            "@weekly" => "0 0 * * 0",
            "@daily" | "@midnight" => "0 0 * * *",
            "@hourly" => "0 * * * *",
            other if other.starts_with('@') => return Err(format!("unrecognized descriptor: {other}")),
            other => other,
        };
        let fields: Vec<&str> = expanded.split_whitespace().collect();
        let [minutes, hours, days, months, weekdays] = fields.as_slice() else {
            return Err(format!("expected exactly 5 fields, found {}: [{}]", fields.len(), fields.join(" ")));
        };
        let is_star = |field: &str| field.starts_with(['*', '?']);
        Ok(Self {
            minutes: field(minutes, 0, 59, &[])?,
            hours: field(hours, 0, 23, &[])?,
            days: field(days, 1, 31, &[])?,
            months: field(months, 1, 12, MONTHS)?,
            weekdays: field(weekdays, 0, 6, DAYS)?,
            either_day: !is_star(days) && !is_star(weekdays),
        })
    }

    fn is_on(&self, date: Date) -> bool {
        let day = has(self.days, date.day().into());
        let weekday = has(self.weekdays, date.weekday().number_days_from_sunday().into());
        let fits = if self.either_day { day || weekday } else { day && weekday };
        fits && has(self.months, u8::from(date.month()).into())
    }

    /// The times of a day, in order.
    fn times(&self) -> impl DoubleEndedIterator<Item = Time> {
        (0..24_u8).filter(|hour| has(self.hours, (*hour).into())).flat_map(|hour| {
            let minutes = (0..60_u8).filter(|minute| has(self.minutes, (*minute).into()));
            minutes.filter_map(move |minute| Time::from_hms(hour, minute, 0).ok()).collect::<Vec<_>>()
        })
    }

    /// The first time after this one; `None` when there is none within nine years.
    pub(super) fn next(&self, after: OffsetDateTime) -> Option<OffsetDateTime> {
        let days = (0..FARTHEST).map_while(|days| after.date().checked_add(Duration::days(days)));
        days.filter(|date| self.is_on(*date))
            .flat_map(|date| self.times().map(move |time| date.with_time(time).assume_utc()).collect::<Vec<_>>())
            .find(|time| *time > after)
    }

    /// The last time up to this one and after another.
    pub(super) fn latest(&self, after: OffsetDateTime, until: OffsetDateTime) -> Option<OffsetDateTime> {
        let days = (0..FARTHEST).map_while(|days| until.date().checked_sub(Duration::days(days)));
        days.take_while(|date| *date >= after.date())
            .filter(|date| self.is_on(*date))
            .flat_map(|date| self.times().rev().map(move |time| date.with_time(time).assume_utc()).collect::<Vec<_>>())
            .find(|time| *time <= until)
            .filter(|time| *time > after)
    }
}

fn has(bits: u64, number: u32) -> bool {
    bits & (1 << number) != 0
}

/// Reads a list of `*`, `n`, `n-m`, each with `/step`.
fn field(text: &str, lowest: u32, highest: u32, names: &[&str]) -> Result<u64, String> {
    let mut bits = 0_u64;
    for part in text.split(',') {
        let (range, step) = part.split_once('/').map_or((part, None), |(range, step)| (range, Some(step)));
        let (first, last) = match range {
            "*" | "?" => (lowest, highest),
            _ => {
                if let Some((first, last)) = range.split_once('-') {
                    (number(first, lowest, names)?, number(last, lowest, names)?)
                } else {
                    let first = number(range, lowest, names)?;
                    // A step makes a range of a number.
                    (first, if step.is_some() { highest } else { first })
                }
            }
        };
        let step: usize = match step {
            Some(step) => step.parse().map_err(|_| format!("failed to parse int from {step}"))?,
            None => 1,
        };
        if step == 0 {
            return Err(format!("step of range should be a positive number: {part}"));
        }
        if first < lowest || last > highest {
            return Err(format!("{part} is not between {lowest} and {highest}"));
        }
        if first > last {
            return Err(format!("beginning of range ({first}) beyond end of range ({last}): {part}"));
        }
        bits |= (first..=last).step_by(step).fold(0, |bits, number| bits | (1 << number));
    }
    Ok(bits)
}

fn number(text: &str, lowest: u32, names: &[&str]) -> Result<u32, String> {
    let found = names.iter().zip(lowest..).find(|(name, _)| text.eq_ignore_ascii_case(name));
    match found {
        Some((_, number)) => Ok(number),
        None => text.parse().map_err(|_| format!("failed to parse int from {text}")),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use time::macros::datetime;

    use super::*;

    fn new_year(year: i32) -> OffsetDateTime {
        Date::from_ordinal_date(year, 1).unwrap().midnight().assume_utc()
    }

    #[test]
    fn the_next_time_follows_the_schedule() {
        let after = datetime!(2026-01-01 10:07:30 UTC);
        let cases = [
            ("* * * * *", datetime!(2026-01-01 10:08 UTC)),
            ("*/15 * * * *", datetime!(2026-01-01 10:15 UTC)),
            ("5 * * * *", datetime!(2026-01-01 11:05 UTC)),
            ("@hourly", datetime!(2026-01-01 11:00 UTC)),
            ("@daily", datetime!(2026-01-02 00:00 UTC)),
            ("@weekly", datetime!(2026-01-04 00:00 UTC)),
            ("@monthly", datetime!(2026-02-01 00:00 UTC)),
            ("@yearly", datetime!(2027-01-01 00:00 UTC)),
            ("30 8-10/2 * * MON-FRI", datetime!(2026-01-01 10:30 UTC)),
            ("0 0 29 feb *", datetime!(2028-02-29 00:00 UTC)),
            ("0 0 13 * 5", datetime!(2026-01-02 00:00 UTC)),
            ("0 0 13 * *", datetime!(2026-01-13 00:00 UTC)),
            ("10,20 1 1 1 *", datetime!(2027-01-01 01:10 UTC)),
        ];
        for (text, expected) in cases {
            assert_eq!(Schedule::parse(text).unwrap().next(after), Some(expected), "{text}");
        }
        assert_eq!(Schedule::parse("0 0 30 2 *").unwrap().next(after), None);
    }

    #[test]
    fn the_latest_time_is_the_one_to_make_up_for() {
        let hourly = Schedule::parse("@hourly").unwrap();
        let latest = |after, until| hourly.latest(after, until);
        let noon = datetime!(2026-01-01 12:00 UTC);
        assert_eq!(latest(datetime!(2026-01-01 09:30 UTC), datetime!(2026-01-01 12:59 UTC)), Some(noon));
        assert_eq!(latest(noon, datetime!(2026-01-01 12:59 UTC)), None);
        assert_eq!(latest(datetime!(2026-01-01 11:59 UTC), noon), Some(noon));
        assert_eq!(latest(datetime!(2025-12-31 23:30 UTC), new_year(2026)), Some(new_year(2026)));
    }

    #[test]
    fn invalid_schedules_are_refused() {
        for text in [
            "",
            "* * * *",
            "60 * * * *",
            "* * 0 * *",
            "*/0 * * * *",
            "5-3 * * * *",
            "x * * * *",
            "@never",
            "* * * * * *",
        ] {
            assert!(Schedule::parse(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in "[0-9*/,@a-z -]{0,30}") {
            let _ = Schedule::parse(&text);
        }

        /// The next time is later, on the minute, and is the latest one as seen from itself.
        #[test]
        fn next_and_latest_agree(
            minute in 0_u8..60, hour in 0_u8..24, day in 1_u8..28, step in 1_u8..20, seconds in 0_i64..40_000_000,
        ) {
            for text in [format!("{minute} {hour} * * *"), format!("*/{step} * {day} * *"), format!("{minute} * * * 3")] {
                let schedule = Schedule::parse(&text).unwrap();
                let after = new_year(2026) + Duration::seconds(seconds);
                let next = schedule.next(after).unwrap();
                prop_assert!(next > after && next.second() == 0);
                prop_assert_eq!(schedule.latest(after, next), Some(next));
                prop_assert_eq!(schedule.latest(after, next - Duration::seconds(1)), None);
            }
        }
    }
}
