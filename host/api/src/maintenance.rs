//! Times at which what is installed may change.

use std::time::Duration;

use jiff::{
    SignedDuration, Timestamp, Zoned,
    civil::{Time, Weekday},
    tz::TimeZone,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{limits::duration, schema};

/// The longest duration of a window.
const LONGEST: Duration = Duration::from_hours(7 * 24);

/// A time that comes again every day or every week.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MaintenanceWindow {
    /// The days of the week on which it begins: Mon, Tue, Wed, Thu, Fri, Sat, Sun. Default: every day.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 7), inner(regex(pattern = "^(Mon|Tue|Wed|Thu|Fri|Sat|Sun)$")))]
    pub days: Vec<String>,
    /// The time of the day at which it begins, such as 02:30.
    #[schemars(regex(pattern = "^([01][0-9]|2[0-3]):[0-5][0-9]$"))]
    pub start: String,
    /// How long it is, such as 90m or 4h: at least 1m, at most 168h.
    #[schemars(schema_with = "schema::duration")]
    pub duration: String,
    /// The time zone, such as Europe/Berlin. Default: UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub time_zone: Option<String>,
}

/// A window that cannot be parsed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("spec.maintenanceWindows[{index}].{field}: {value:?} is not {want}")]
pub struct WindowError {
    index: usize,
    field: &'static str,
    value: String,
    want: &'static str,
}

/// Parsed windows.
#[derive(Clone, Debug)]
pub struct Windows(Vec<Window>);

#[derive(Clone, Debug)]
struct Window {
    days: Vec<Weekday>,
    start: Time,
    duration: SignedDuration,
    zone: TimeZone,
}

/// Whether a change may happen at a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Allowed {
    /// There are no windows.
    Always,
    /// The time is in a window, which ends at this time.
    Until(Timestamp),
    /// The next window begins at this time.
    From(Timestamp),
    /// No window begins within the next weeks.
    Never,
}

impl Windows {
    /// Parses the windows of a spec.
    pub fn parse(windows: &[MaintenanceWindow]) -> Result<Self, WindowError> {
        windows
            .iter()
            .enumerate()
            .map(|(index, window)| Window::parse(index, window))
            .collect::<Result<_, _>>()
            .map(Self)
    }

    /// Whether a change may happen now.
    pub fn at(&self, now: Timestamp) -> Allowed {
        if self.0.is_empty() {
            return Allowed::Always;
        }
        let occurrences: Vec<(Timestamp, Timestamp)> =
            self.0.iter().flat_map(|window| window.occurrences(now)).collect();
        let open = occurrences.iter().filter(|(start, end)| *start <= now && now < *end).map(|(_, end)| *end).max();
        if let Some(end) = open {
            return Allowed::Until(end);
        }
        let next = occurrences.iter().map(|(start, _)| *start).filter(|start| *start > now).min();
        next.map_or(Allowed::Never, Allowed::From)
    }
}

impl Window {
    fn parse(index: usize, window: &MaintenanceWindow) -> Result<Self, WindowError> {
        let wrong = |field, value: &str, want| WindowError { index, field, value: value.to_owned(), want };
        let day = |text: &String| {
            let days = [
                ("Mon", Weekday::Monday),
                ("Tue", Weekday::Tuesday),
                ("Wed", Weekday::Wednesday),
                ("Thu", Weekday::Thursday),
                ("Fri", Weekday::Friday),
                ("Sat", Weekday::Saturday),
                ("Sun", Weekday::Sunday),
            ];
            let found = days.into_iter().find(|(name, _)| name == text).map(|(_, day)| day);
            found.ok_or_else(|| wrong("days", text, "one of Mon, Tue, Wed, Thu, Fri, Sat, Sun"))
        };
        let start = Time::strptime("%H:%M", &window.start);
        let length = duration(&window.duration).filter(|it| (Duration::from_mins(1)..=LONGEST).contains(it));
        let length = length.and_then(|it| SignedDuration::try_from(it).ok());
        let name = window.time_zone.as_deref().unwrap_or("UTC");
        Ok(Self {
            days: window.days.iter().map(day).collect::<Result<_, _>>()?,
            start: start.map_err(|_| wrong("start", &window.start, "a time of the day such as 02:30"))?,
            duration: length.ok_or_else(|| wrong("duration", &window.duration, "a duration from 1m to 168h"))?,
            zone: TimeZone::get(name).map_err(|_| wrong("timeZone", name, "a time zone such as Europe/Berlin"))?,
        })
    }

    /// When it begins and ends, from before the time until two weeks later. A start that the clocks skip is an hour later, as people expect.
    fn occurrences(&self, now: Timestamp) -> Vec<(Timestamp, Timestamp)> {
        let today = Zoned::new(now, self.zone.clone()).date();
        let on = |offset: i64| {
            let date = today.checked_add(SignedDuration::from_hours(24 * offset)).ok()?;
            let on_day = self.days.is_empty() || self.days.contains(&date.weekday());
            let start = date.to_datetime(self.start).to_zoned(self.zone.clone()).ok().filter(|_| on_day)?.timestamp();
            Some((start, start.checked_add(self.duration).ok()?))
        };
        (-8..=14).filter_map(on).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(days: &[&str], start: &str, duration: &str, zone: &str) -> MaintenanceWindow {
        MaintenanceWindow {
            days: days.iter().map(|day| (*day).to_owned()).collect(),
            start: start.to_owned(),
            duration: duration.to_owned(),
            time_zone: Some(zone.to_owned()).filter(|zone| !zone.is_empty()),
        }
    }

    fn at(windows: &[MaintenanceWindow], now: &str) -> String {
        match Windows::parse(windows).unwrap().at(now.parse().unwrap()) {
            Allowed::Until(end) => format!("until {end}"),
            Allowed::From(start) => format!("from {start}"),
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn a_change_waits_for_the_next_window() {
        // 2026-11-24 is a Tuesday.
        let weekend = window(&["Sat", "Sun"], "22:00", "4h", "");
        let night = window(&[], "01:30", "30m", "Europe/Berlin");
        for (windows, now, expected) in [
            (vec![], "2026-11-24T12:00:00Z", "Always"),
            (vec![weekend.clone()], "2026-11-24T12:00:00Z", "from 2026-11-28T22:00:00Z"),
            (vec![weekend.clone()], "2026-11-28T22:00:00Z", "until 2026-11-29T02:00:00Z"),
            (vec![weekend.clone()], "2026-11-30T01:59:59Z", "until 2026-11-30T02:00:00Z"),
            (vec![weekend.clone()], "2026-11-30T02:00:00Z", "from 2026-12-05T22:00:00Z"),
            (vec![weekend, night.clone()], "2026-11-24T12:00:00Z", "from 2026-11-25T00:30:00Z"),
            // Summer time: an hour earlier.
            (vec![night], "2026-07-01T12:00:00Z", "from 2026-07-01T23:30:00Z"),
            // 02:30 does not exist on the last Sunday of March: the window begins at 03:30.
            (
                vec![window(&["Sun"], "02:30", "1h", "Europe/Berlin")],
                "2026-03-28T12:00:00Z",
                "from 2026-03-29T01:30:00Z",
            ),
            // A week is always open.
            (vec![window(&["Mon"], "00:00", "168h", "")], "2026-11-29T23:59:59Z", "until 2026-11-30T00:00:00Z"),
        ] {
            assert_eq!(at(&windows, now), expected, "{windows:?} at {now}");
        }
    }

    #[test]
    fn what_is_not_a_window_is_named() {
        let message = |wrong: MaintenanceWindow| {
            Windows::parse(&[window(&[], "00:00", "1h", ""), wrong]).unwrap_err().to_string()
        };
        insta::assert_snapshot!([
            message(window(&["Monday"], "00:00", "1h", "")),
            message(window(&[], "24:00", "1h", "")),
            message(window(&[], "00:00", "30s", "")),
            message(window(&[], "00:00", "169h", "")),
            message(window(&[], "00:00", "1h", "Europe/Berlln")),
        ].join("\n"), @r#"
        spec.maintenanceWindows[1].days: "Monday" is not one of Mon, Tue, Wed, Thu, Fri, Sat, Sun
        spec.maintenanceWindows[1].start: "24:00" is not a time of the day such as 02:30
        spec.maintenanceWindows[1].duration: "30s" is not a duration from 1m to 168h
        spec.maintenanceWindows[1].duration: "169h" is not a duration from 1m to 168h
        spec.maintenanceWindows[1].timeZone: "Europe/Berlln" is not a time zone such as Europe/Berlin
        "#);
    }
}
