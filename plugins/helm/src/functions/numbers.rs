//! Arithmetic, and conversion to numbers.

use chandler_go_template::{Call, Function, Type, Value};

use crate::number;

use super::{Result, any, error, int, ints, made, values::display};

pub(super) fn find(name: &str) -> Option<Function> {
    use Type::{Any, Float, Int, String};
    Some(match name {
        "atoi" => Function::new(&[String], |_, a| Ok(Value::int(atoi(&super::text(a, 0))))),
        "int" => Function::new(&[Any], |_, a| Ok(Value::int(integer(&any(a, 0))))),
        "int64" => Function::new(&[Any], |_, a| Ok(Value::int64(integer(&any(a, 0))))),
        "float64" => Function::new(&[Any], |_, a| Ok(Value::Float(float(&any(a, 0))))),
        "toDecimal" => Function::new(&[Any], |_, a| {
            let text = display(&any(a, 0));
            Ok(Value::int64(i64::from_str_radix(&text.text(), 8).unwrap_or_default()))
        }),
        "add" => Function::variadic(&[], Any, |_, a| {
            Ok(Value::int64(a.iter().fold(0, |sum: i64, value| sum.wrapping_add(integer(value)))))
        }),
        "add1" => Function::new(&[Any], |_, a| Ok(Value::int64(integer(&any(a, 0)).wrapping_add(1)))),
        "sub" => {
            Function::new(&[Any, Any], |_, a| Ok(Value::int64(integer(&any(a, 0)).wrapping_sub(integer(&any(a, 1))))))
        }
        "mul" => Function::variadic(&[Any], Any, |_, a| {
            Ok(Value::int64(a.iter().fold(1, |product: i64, value| product.wrapping_mul(integer(value)))))
        }),
        "div" => Function::new(&[Any, Any], |_, a| match (integer(&any(a, 0)), integer(&any(a, 1))) {
            (_, 0) => error("runtime error: integer divide by zero"),
            (one, other) => Ok(Value::int64(one.wrapping_div(other))),
        }),
        "mod" => Function::new(&[Any, Any], |_, a| match (integer(&any(a, 0)), integer(&any(a, 1))) {
            (_, 0) => error("runtime error: integer divide by zero"),
            (one, other) => Ok(Value::int64(one.wrapping_rem(other))),
        }),
        "max" | "biggest" => {
            Function::variadic(&[Any], Any, |_, a| Ok(Value::int64(a.iter().map(integer).max().unwrap_or_default())))
        }
        "min" => {
            Function::variadic(&[Any], Any, |_, a| Ok(Value::int64(a.iter().map(integer).min().unwrap_or_default())))
        }
        "maxf" => Function::variadic(&[Any], Any, |_, a| {
            Ok(Value::Float(a.iter().map(float).reduce(f64::max).unwrap_or_default()))
        }),
        "minf" => Function::variadic(&[Any], Any, |_, a| {
            Ok(Value::Float(a.iter().map(float).reduce(f64::min).unwrap_or_default()))
        }),
        "addf" => {
            Function::variadic(&[], Any, |_, a| decimal(Value::Float(0.0), a, Decimal::add, |one, other| one + other))
        }
        "add1f" => Function::new(&[Any], |_, a| decimal(Value::Float(1.0), a, Decimal::add, |one, other| one + other)),
        "subf" => Function::variadic(&[Any], Any, |_, a| {
            decimal(any(a, 0), a.get(1..).unwrap_or_default(), Decimal::sub, |one, other| one - other)
        }),
        "mulf" => Function::variadic(&[Any], Any, |_, a| {
            decimal(any(a, 0), a.get(1..).unwrap_or_default(), Decimal::mul, |one, other| one * other)
        }),
        "divf" => Function::variadic(&[Any], Any, |_, a| {
            let divisors = a.get(1..).unwrap_or_default();
            if divisors.iter().any(|value| float(value) == 0.0) {
                return error("decimal division by 0");
            }
            decimal(any(a, 0), divisors, Decimal::div, |one, other| one / other)
        }),
        "ceil" => Function::new(&[Any], |_, a| Ok(Value::Float(float(&any(a, 0)).ceil()))),
        "floor" => Function::new(&[Any], |_, a| Ok(Value::Float(float(&any(a, 0)).floor()))),
        "round" => Function::variadic(&[Any, Int], Float, round),
        "until" => Function::new(&[Int], |call, a| {
            let count = int(a, 0);
            until(call, 0, count, if count < 0 { -1 } else { 1 })
        }),
        "untilStep" => Function::new(&[Int, Int, Int], |call, a| until(call, int(a, 0), int(a, 1), int(a, 2))),
        "seq" => Function::variadic(&[], Int, seq),
        _ => return None,
    })
}

/// `strconv.Atoi` without its error: the closest number for one that is too large.
fn atoi(text: &str) -> i64 {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return 0;
    }
    text.parse().unwrap_or(if text.starts_with('-') { i64::MIN } else { i64::MAX })
}

/// `cast.ToInt64`.
pub(super) fn integer(value: &Value) -> i64 {
    match value {
        Value::Bool(value) => i64::from(*value),
        Value::Int(value, _) => *value,
        Value::Float(value) => truncated(*value),
        Value::String(text) => parse_integer(without_decimals(&text.text())).unwrap_or_default(),
        Value::Nil | Value::List(_) | Value::Map(_) | Value::Object(_) => 0,
    }
}

/// A float as an integer, as the processors of Helm's users convert it.
#[expect(clippy::cast_possible_truncation, reason = "the range is checked")]
fn truncated(value: f64) -> i64 {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    if (-LIMIT..LIMIT).contains(&value) { value as i64 } else { i64::MIN }
}

/// `12.75` as `12`, as cast does before it parses; other texts as they are.
fn without_decimals(text: &str) -> &str {
    let Some((whole, decimals)) = text.split_once('.') else { return text };
    let digits = whole.strip_prefix(['-', '+']).unwrap_or(whole);
    if !digits.bytes().chain(decimals.bytes()).all(|byte| byte.is_ascii_digit()) {
        return text;
    }
    if digits.is_empty() { "0" } else { whole }
}

/// `strconv.ParseInt(text, 0, 64)`.
fn parse_integer(text: &str) -> Option<i64> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let lower = digits.to_ascii_lowercase();
    let (radix, digits) = match lower.as_bytes() {
        [b'0', b'x', ..] => (16, lower.get(2..)?),
        [b'0', b'o', ..] => (8, lower.get(2..)?),
        [b'0', b'b', ..] => (2, lower.get(2..)?),
        [b'0', _, ..] => (8, lower.get(1..)?),
        _ => (10, lower.as_str()),
    };
    // Underscores may stand between digits and behind the prefix.
    let prefixed = radix != 10;
    if digits.ends_with('_')
        || digits.contains("__")
        || (digits.starts_with('_') && !prefixed)
        || digits.starts_with(['+', '-'])
    {
        return None;
    }
    let magnitude = u64::from_str_radix(&digits.replace('_', ""), radix).ok()?;
    match i64::try_from(magnitude) {
        Ok(value) => Some(if negative { -value } else { value }),
        Err(_) if negative && magnitude == i64::MIN.unsigned_abs() => Some(i64::MIN),
        Err(_) => None,
    }
}

/// `cast.ToFloat64`.
#[expect(clippy::cast_precision_loss, reason = "as in Go")]
pub(super) fn float(value: &Value) -> f64 {
    match value {
        Value::Bool(value) => f64::from(u8::from(*value)),
        Value::Int(value, _) => *value as f64,
        Value::Float(value) => *value,
        Value::String(text) => parse_float(&text.text()),
        Value::Nil | Value::List(_) | Value::Map(_) | Value::Object(_) => 0.0,
    }
}

fn parse_float(text: &str) -> f64 {
    let lower = text.to_ascii_lowercase();
    match lower.trim_start_matches(['+', '-']) {
        "inf" | "infinity" if lower.starts_with('-') => f64::NEG_INFINITY,
        "inf" | "infinity" => f64::INFINITY,
        "nan" => f64::NAN,
        _ => text.parse().ok().filter(|value: &f64| value.is_finite()).unwrap_or_default(),
    }
}

#[expect(clippy::unnecessary_wraps, reason = "the signature of a function of templates")]
fn round(_: &mut Call<'_>, a: &[Value]) -> Result {
    let half = match a.get(2) {
        Some(Value::Float(half)) => *half,
        _ => 0.5,
    };
    let places = i32::try_from(int(a, 1)).unwrap_or(i32::MAX);
    let power = 10_f64.powi(places);
    let digit = power * float(&any(a, 0));
    let rounded = if digit.fract() >= half { digit.ceil() } else { digit.floor() };
    Ok(Value::Float(rounded / power))
}

/// A longer list of numbers is not made.
const MOST_NUMBERS: i64 = 10_000_000;

fn steps(call: &mut Call<'_>, start: i64, end: i64, step: i64) -> Result<Vec<i64>> {
    let count = match (step, start < end, start > end) {
        (1.., true, _) | (..=-1, _, true) => {
            (i128::from(end) - i128::from(start)).abs().div_ceil_by(i128::from(step).abs())
        }
        _ => 0,
    };
    if count > i128::from(MOST_NUMBERS) {
        return error(format!("a list of {count} numbers: at most {MOST_NUMBERS}"));
    }
    let count = usize::try_from(count).unwrap_or_default();
    call.charge(count.saturating_mul(32))?;
    Ok((0..).take(count).map(|at: i64| start + at * step).collect())
}

/// Division of positive numbers that rounds up.
trait DivCeil {
    fn div_ceil_by(self, by: Self) -> Self;
}

impl DivCeil for i128 {
    fn div_ceil_by(self, by: Self) -> Self {
        (self + by - 1) / by
    }
}

fn until(call: &mut Call<'_>, start: i64, end: i64, step: i64) -> Result {
    Ok(ints(steps(call, start, end, step)?.into_iter()))
}

fn seq(call: &mut Call<'_>, a: &[Value]) -> Result {
    let numbers: Vec<i64> = (0..a.len()).map(|at| int(a, at)).collect();
    let inclusive = |end: i64, step: i64| if step > 0 { end.saturating_add(1) } else { end.saturating_sub(1) };
    let values = match *numbers.as_slice() {
        [end] => {
            let step = if end < 1 { -1 } else { 1 };
            steps(call, 1, inclusive(end, step), step)?
        }
        [start, end] => {
            let step = if end < start { -1 } else { 1 };
            steps(call, start, inclusive(end, step), step)?
        }
        [start, step, end] => {
            let direction = if end < start { -1 } else { 1 };
            if (direction < 0) != (step < 0) || step == 0 {
                Vec::new()
            } else {
                steps(call, start, inclusive(end, direction), step)?
            }
        }
        _ => Vec::new(),
    };
    let text: Vec<String> = values.iter().map(i64::to_string).collect();
    made(call, text.join(" "))
}

/// A decimal number: `digits` times ten to the power of `exponent`.
#[derive(Clone, Copy)]
struct Decimal {
    digits: i128,
    exponent: i32,
}

impl Decimal {
    fn of(value: f64) -> Option<Self> {
        let text = value.is_finite().then(|| format!("{value:e}"))?;
        let (mantissa, exponent) = text.split_once('e')?;
        let decimals = mantissa.split_once('.').map_or(0, |(_, part)| part.len());
        let exponent: i32 = exponent.parse().ok()?;
        Some(Self {
            digits: mantissa.replace('.', "").parse().ok()?,
            exponent: exponent - i32::try_from(decimals).ok()?,
        })
    }

    fn value(self) -> f64 {
        format!("{}e{}", self.digits, self.exponent).parse().unwrap_or_default()
    }

    fn scaled(self, exponent: i32) -> Option<i128> {
        let shift = u32::try_from(self.exponent.checked_sub(exponent)?).ok()?;
        self.digits.checked_mul(10_i128.checked_pow(shift)?)
    }

    fn aligned(self, other: Self) -> Option<(i128, i128, i32)> {
        let exponent = self.exponent.min(other.exponent);
        Some((self.scaled(exponent)?, other.scaled(exponent)?, exponent))
    }

    fn add(self, other: Self) -> Option<Self> {
        let (one, other, exponent) = self.aligned(other)?;
        Some(Self { digits: one.checked_add(other)?, exponent })
    }

    fn sub(self, other: Self) -> Option<Self> {
        self.add(Self { digits: -other.digits, ..other })
    }

    fn mul(self, other: Self) -> Option<Self> {
        Some(Self { digits: self.digits.checked_mul(other.digits)?, exponent: self.exponent + other.exponent })
    }

    /// The quotient with sixteen places, rounded half away from zero.
    fn div(self, other: Self) -> Option<Self> {
        const PLACES: i32 = 16;
        let shift = self.exponent.checked_sub(other.exponent)?.checked_add(PLACES)?;
        let power = 10_i128.checked_pow(shift.unsigned_abs())?;
        let (dividend, divisor) = if shift < 0 {
            (self.digits, other.digits.checked_mul(power)?)
        } else {
            (self.digits.checked_mul(power)?, other.digits)
        };
        let (quotient, rest) = (dividend.checked_div(divisor)?, dividend.checked_rem(divisor)?);
        let away = i128::from(rest.abs().checked_mul(2)? >= divisor.abs());
        let sign = if (dividend < 0) == (divisor < 0) { 1 } else { -1 };
        Some(Self { digits: quotient + sign * away, exponent: -PLACES })
    }
}

/// Sprig computes with decimals, so that 0.1 and 0.2 are 0.3; numbers beyond these are computed as floats.
fn decimal(
    first: Value,
    others: &[Value],
    exact: fn(Decimal, Decimal) -> Option<Decimal>,
    close: fn(f64, f64) -> f64,
) -> Result {
    if let Some(other) = [&first].into_iter().chain(others).map(float).find(|value| !value.is_finite()) {
        return error(format!("Cannot create a Decimal from {}", number::general(other)));
    }
    let sum = others
        .iter()
        .try_fold(Decimal::of(float(&first)), |sum, value| exact(sum?, Decimal::of(float(value))?).map(Some));
    if let Some(Some(sum)) = sum {
        return Ok(Value::Float(sum.value()));
    }
    Ok(Value::Float(others.iter().fold(float(&first), |sum, value| close(sum, float(value)))))
}
