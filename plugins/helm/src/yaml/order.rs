//! The order of keys in text that go-yaml writes: numbers within keys are compared as numbers.

use std::cmp::Ordering;

/// Sorts keys as go-yaml does.
///
/// That order is not transitive for all keys, so the sort is a plain merge sort, which needs no such promise.
pub(super) fn sort<T>(mut items: Vec<T>, key: &impl Fn(&T) -> &str) -> Vec<T> {
    if items.len() < 2 {
        return items;
    }
    let right = sort(items.split_off(items.len() / 2), key);
    let left = sort(items, key);
    let mut merged = Vec::with_capacity(left.len() + right.len());
    let (mut left, mut right) = (left.into_iter().peekable(), right.into_iter().peekable());
    loop {
        let take_right = match (left.peek(), right.peek()) {
            (Some(one), Some(other)) => less(key(other), key(one)),
            (None, Some(_)) => true,
            (Some(_), None) => false,
            (None, None) => return merged,
        };
        merged.extend(if take_right { right.next() } else { left.next() });
    }
}

/// Whether `one` comes before `other`.
pub(super) fn less(one: &str, other: &str) -> bool {
    if one.is_ascii() && other.is_ascii() {
        let same = one.bytes().zip(other.bytes()).take_while(|(one, other)| one == other).count();
        if same == one.len() || same == other.len() {
            return one.len() < other.len();
        }
    }
    let (a, b): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
    let same = a.iter().zip(&b).take_while(|(one, other)| one == other).count();
    let (Some(&x), Some(&y)) = (a.get(same), b.get(same)) else { return a.len() < b.len() };
    match (x.is_alphabetic(), y.is_alphabetic()) {
        (true, true) => return x < y,
        (false, false) => {}
        (_, letter) => {
            return letter;
        }
    }
    let mut start = 0;
    if x == '0' || y == '0' {
        // Behind other digits, zeros count.
        let digits = a.get(..same).unwrap_or_default().iter().rev().take_while(|digit| digit.is_ascii_digit());
        start = i64::from(digits.into_iter().any(|digit| *digit != '0'));
    }
    let number = |text: &[char]| {
        let digits: Vec<u32> = text.iter().map_while(|character| character.to_digit(10)).collect();
        let value =
            digits.iter().fold(start, |value: i64, digit| value.wrapping_mul(10).wrapping_add(i64::from(*digit)));
        (value, digits.len())
    };
    let (one, other) = (number(a.get(same..).unwrap_or_default()), number(b.get(same..).unwrap_or_default()));
    match one.cmp(&other) {
        Ordering::Equal => x < y,
        order => order == Ordering::Less,
    }
}
