//! Times in templates.

use std::rc::Rc;

use chandler_go_template::{Call, Function, FunctionError, Type, Value};

use super::{
    Result, any, duration,
    generated::generate,
    made, text,
    time::{self, Time},
};

pub(super) fn find(name: &str) -> Option<Function> {
    use Type::{Any, String};
    const TIME: Type = Type::Object("time.Time");
    Some(match name {
        "now" => Function::new(&[], |call, a| generate(call, "now", a)),
        "date" => Function::new(&[String, Any], |call, a| in_zone(call, &text(a, 0), &any(a, 1), "Local")),
        "dateInZone" | "date_in_zone" => {
            Function::new(&[String, Any, String], |call, a| in_zone(call, &text(a, 0), &any(a, 1), &text(a, 2)))
        }
        "htmlDate" => Function::new(&[Any], |call, a| in_zone(call, "2006-01-02", &any(a, 0), "Local")),
        "htmlDateInZone" => {
            Function::new(&[Any, String], |call, a| in_zone(call, "2006-01-02", &any(a, 0), &text(a, 1)))
        }
        "toDate" => Function::new(&[String, String], |_, a| {
            Ok(value(time::parse(&text(a, 0), &text(a, 1)).unwrap_or_else(|_| Time::utc(YEAR_ONE))))
        }),
        "mustToDate" => Function::new(&[String, String], |_, a| {
            time::parse(&text(a, 0), &text(a, 1)).map(value).map_err(FunctionError::new)
        }),
        "dateModify" | "date_modify" => {
            Function::new(&[String, TIME], |_, a| Ok(modified(&text(a, 0), &any(a, 1)).unwrap_or_else(|| any(a, 1))))
        }
        "mustDateModify" | "must_date_modify" => Function::new(&[String, TIME], |_, a| {
            modified(&text(a, 0), &any(a, 1))
                .ok_or_else(|| FunctionError::new(format!("time: invalid duration {:?}", text(a, 0))))
        }),
        "ago" => Function::new(&[Any], |call, a| {
            let now = now(call)?;
            let then = match any(a, 0) {
                Value::Object(object) => object.as_any().downcast_ref::<Time>().cloned().unwrap_or_else(|| now.clone()),
                Value::Int(seconds, _) => Time::utc(seconds),
                _ => now.clone(),
            };
            made(call, duration::display(now.seconds.saturating_sub(then.seconds).saturating_mul(1_000_000_000)))
        }),
        "duration" => Function::new(&[Any], |call, a| {
            let seconds = match any(a, 0) {
                Value::String(text) => text.text().parse().unwrap_or_default(),
                Value::Int(seconds, chandler_go_template::IntKind::Int64) => seconds,
                _ => 0_i64,
            };
            made(call, duration::display(seconds.wrapping_mul(1_000_000_000)))
        }),
        "durationRound" => Function::new(&[Any], |call, a| {
            let nanos = match any(a, 0) {
                Value::String(text) => duration::parse(&text.text()).unwrap_or_default(),
                Value::Int(nanos, chandler_go_template::IntKind::Int64) => nanos,
                Value::Object(object) => match object.as_any().downcast_ref::<Time>() {
                    Some(then) => now(call)?.seconds.saturating_sub(then.seconds).saturating_mul(1_000_000_000),
                    None => 0,
                },
                _ => 0,
            };
            made(call, rounded(nanos))
        }),
        "unixEpoch" => Function::new(&[TIME], |call, a| {
            let seconds = any(a, 0).as_object::<Time>().map_or(0, |time| time.seconds);
            made(call, seconds.to_string())
        }),
        _ => return None,
    })
}

/// Go's zero time.
const YEAR_ONE: i64 = -62_135_596_800;

fn value(time: Time) -> Value {
    Value::Object(Rc::new(time))
}

/// The time, which only the host has.
fn now(call: &mut Call<'_>) -> Result<Time> {
    let now = generate(call, "now", &[])?;
    Ok(now.as_object::<Time>().cloned().unwrap_or_else(|| Time::utc(0)))
}

fn in_zone(call: &mut Call<'_>, layout: &str, date: &Value, zone: &str) -> Result {
    let time = match date {
        Value::Object(object) => match object.as_any().downcast_ref::<Time>() {
            Some(time) => time.clone(),
            None => now(call)?,
        },
        Value::Int(seconds, _) => Time::utc(*seconds),
        _ => now(call)?,
    };
    let time = match zone {
        "" | "UTC" | "Local" | "GMT" | "Etc/UTC" | "Etc/GMT" | "Zulu" | "Etc/Zulu" | "Universal" | "UCT" => {
            time.within(0, if matches!(zone, "GMT" | "Etc/GMT") { "GMT" } else { "UTC" })
        }
        // A zone has letters and a stroke; of other names Sprig makes UTC.
        zone if zone.contains('/') || zone.len() <= 4 => {
            return Err(FunctionError::Refused {
                function: "dateInZone".to_owned(),
                reason: format!("this renderer knows no time zone {zone:?}; use \"UTC\""),
            });
        }
        _ => time.within(0, "UTC"),
    };
    call.charge(layout.len().saturating_mul(4))?;
    made(call, time.format(layout))
}

fn modified(duration: &str, date: &Value) -> Option<Value> {
    let nanos = i128::from(duration::parse(duration)?);
    let time = date.as_object::<Time>()?;
    let total = i128::from(time.seconds) * 1_000_000_000 + i128::from(time.nanos) + nanos;
    let seconds = i64::try_from(total.div_euclid(1_000_000_000)).ok()?;
    let nanos = u32::try_from(total.rem_euclid(1_000_000_000)).ok()?;
    Some(value(Time { seconds, nanos, ..time.clone() }))
}

fn rounded(nanos: i64) -> String {
    const SECOND: u64 = 1_000_000_000;
    let size = nanos.unsigned_abs();
    let sign = if nanos < 0 { "-" } else { "" };
    for (unit, name) in [
        (365 * 86_400 * SECOND, "y"),
        (30 * 86_400 * SECOND, "mo"),
        (86_400 * SECOND, "d"),
        (3600 * SECOND, "h"),
        (60 * SECOND, "m"),
        (SECOND, "s"),
    ] {
        if size > unit {
            return format!("{sign}{}{name}", size / unit);
        }
    }
    "0s".to_owned()
}
