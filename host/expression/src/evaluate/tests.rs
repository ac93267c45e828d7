use serde_json::json;

use super::*;
use crate::json::to_value;

struct Object(serde_json::Value);

impl Names for Object {
    fn variable(&self, name: &str) -> Option<Outcome> {
        self.0.get(name).map(|value| Ok(to_value(value)))
    }

    fn field(&self, variable: &str, field: &str) -> Option<Outcome> {
        (variable == "joined" && field == "name").then(|| Ok(Value::from("one name")))
    }

    fn call(&self, function: &str, _: &Value, _: &[Value], _: &Meter) -> Option<Outcome> {
        (function == "answer").then_some(Ok(Value::Int(42)))
    }
}

fn object() -> Object {
    Object(json!({
        "object": {
            "name": "näme", "replicas": 3, "ratio": 1.0, "none": null, "list": [1, 2, 3], "flags": {"a": true, "b": false},
            "items": [{"name": "a"}, {"name": "b", "size": 2}, {}],
        },
        "long": "x".repeat(100_000),
        "numbers": (0..1000).collect::<Vec<_>>(),
    }))
}

fn evaluated(text: &str, limit: u64) -> (Outcome, u64) {
    let meter = Meter::new(limit);
    (evaluate(&Program::parse(text).unwrap(), &object(), &meter), meter.used())
}

fn is_true(text: &str) {
    assert_eq!(evaluated(text, 1_000_000).0, Ok(Value::Bool(true)), "{text}");
}

fn fails(text: &str, message: &str) {
    let error = evaluated(text, 1_000_000).0.expect_err(text);
    assert_eq!(error.to_string(), message, "{text}");
}

#[test]
fn the_language_is_evaluated() {
    for text in [
        "object.replicas == 3 && object.replicas == 3.0 && object.ratio == 1",
        "object.replicas + 1 == 4 && 7 / 2 == 3 && 7 % 2 == 1 && -object.replicas == -3",
        "object.name.size() == 4 && size(object.list) == 3",
        "object['name'].startsWith('n') && 'list' in object && 2 in object.list && !('x' in object)",
        "object.list[1] == 2 && object.list + [4] == [1, 2, 3, 4]",
        "has(object.name) && !has(object.missing) && has(object.none) && !has(object.none.deeper)",
        "object.list.all(x, x > 0) && object.list.exists(x, x == 2) && object.list.exists_one(x, x == 2)",
        "object.list.map(x, x * 2) == [2, 4, 6] && object.list.filter(x, x > 1) == [2, 3]",
        "object.list.map(x, x > 1, x * 2) == [4, 6]",
        "object.flags.all(key, key in ['a', 'b']) && object.flags.map(key, key) == ['a', 'b']",
        "object.list.all(x, object.list.exists(y, y == x))",
        "object.list.map(x, object.list.map(y, y * x)) == [[1, 2, 3], [2, 4, 6], [3, 6, 9]]",
        "object.list.all(object, object > 0) && object.name == 'näme'",
        "object.?missing.orValue('x') == 'x' && object.?flags.?a.orValue(false) && !object.?none.?deep.hasValue()",
        "object[?'name'].value() == object.name && optional.none().or(optional.of(1)).value() == 1",
        "{'a': 1, ?'b': object.?missing} == {'a': 1} && [1, ?object.?missing] == [1]",
        "type(object.name) == string && type(1) != type('a') && type([]) == list",
        "string(1) == '1' && string(true) == 'true' && int('2') == 2 && dyn(1) == 1 && bool('true') && double('1.5') == 1.5",
        "'a,b'.split(',') == ['a', 'b'] && ['a', 'b'].join('-') == 'a-b' && 'abc'.substring(1) == 'bc'",
        "'abc'.matches('^[a-c]+$') && 'a1b22'.findAll('[0-9]+') == ['1', '22']",
        "object.name.matches('^' + 'n')",
        "sets.contains(object.list, [1]) && math.greatest(1, 2) == 2 && lists.range(3) == [0, 1, 2]",
        "quantity('1Gi').isGreaterThan(quantity('1Mi')) && isSemver('1.2.3') && ip('10.0.0.1').family() == 4",
        "duration('1h') > duration('1m') && timestamp('2026-01-01T00:00:00Z').getFullYear() == 2026",
        "b'ab' + b'c' == b'abc' && [1, 1, 2].distinct() == [1, 2] && [3, 1].sort() == [1, 3]",
        "!!true && !!!false && !(!true) && --1 == 1 && ---1 == -1",
        "joined.name == 'one name' && has(joined.name) && object.answer() == 42",
        "'%s is %d'.format(['a', 1]) == 'a is 1'",
        "1 < 2.5 && 'a' < 'b' && null == null && object.none == null && 1u == 1",
    ] {
        is_true(text);
    }
}

#[test]
fn errors_are_those_of_kubernetes() {
    for (text, message) in [
        ("object.missing", "no such key: missing"),
        ("object.none.deeper", "no such key: deeper"),
        ("object.name.length == 1", "no such key: length"),
        ("object.list[7]", "index out of bounds: 7"),
        ("object.list[-1]", "index out of bounds: -1"),
        ("object.list.name", "unsupported index type 'string' in list"),
        ("'a' + 1", "no such overload"),
        ("object.name && true", "no such overload"),
        ("object.name.all(x, true)", "no such overload"),
        ("1 / 0", "division by zero"),
        ("9223372036854775807 + 1", "integer overflow"),
        ("elsewhere", "no such attribute(s): elsewhere"),
        ("optional.none().value()", "optional.none() dereference"),
        ("null < null", "no such overload"),
    ] {
        fails(text, message);
    }
}

#[test]
fn errors_give_way_to_results_that_do_not_depend_on_them() {
    for text in [
        "object.missing || true",
        "true || object.missing",
        "!(object.missing && false)",
        "object.items.exists(item, item.name == 'b')",
        "object.items.exists(item, item.size == 2)",
        "!object.items.all(item, item.name == 'a')",
    ] {
        is_true(text);
    }
    fails("object.items.all(item, item.name != '')", "no such key: name");
    fails("object.items.exists(item, item.size == 7)", "no such key: size");
    fails("object.items.map(item, item.size)", "no such key: size");
    fails("object.missing || false", "no such key: missing");
}

#[test]
fn costs_are_bounded() {
    for text in [
        "numbers.all(a, numbers.all(b, numbers.all(c, a + b + c >= 0)))",
        "numbers.all(a, numbers.map(b, b).size() > 0 || true)",
        "numbers.exists(a, numbers.exists(b, a + b < 0)) || true",
        "numbers.all(a, long == long)",
        "numbers.all(a, long.size() > 0)",
        "numbers.all(a, !long.matches('x+y'))",
        "numbers.map(a, long + long).size() > 0",
        "long.replace('', long) == ''",
        "long.indexOf(long) == 0",
        "numbers.map(a, 'x').join(long) == ''",
        "lists.range(1000000000).size() > 0",
        "long.split('').map(a, long.split('')).size() > 0",
    ] {
        let (outcome, used) = evaluated(text, 1_000_000);
        assert_eq!(outcome, Err(EvaluationError::Exhausted), "{text}");
        assert_eq!(used, 1_000_001, "{text}");
    }
    let (outcome, used) = evaluated("numbers.all(a, a >= 0) && long.matches('^x+$') && long == long", 1_000_000);
    assert_eq!(outcome, Ok(Value::Bool(true)));
    assert!((1000..600_000).contains(&used), "{used}");
    fails("'%.999999999f'.format([1.0])", "the precision of a format has at most 2 digits");
    fails("quantity('1e2147483647')", "the exponent of a quantity has at most 2 digits");
}

#[test]
fn memory_is_bounded_before_it_is_taken() {
    let limit = 1 << 20;
    let grown = |first: &str, loops: usize| format!("{first}{} != null", ".map(s, s + s + s + s)".repeat(loops));
    let nested = (0..7).fold("[1, 1, 1, 1]".to_owned(), |value, _| format!("[{value}].map(s, s + s + s + s)[0]"));
    for text in [
        grown("['xxxxxxxx']", 10),
        grown("[b'xxxxxxxx']", 10),
        grown("[[1, 1, 1, 1]]", 8),
        format!("{nested} != []"),
        "numbers.map(a, long + string(a)) != []".to_owned(),
        "numbers.map(a, long.substring(1)) != []".to_owned(),
        "numbers.map(a, optional.of(long.lowerAscii())) != []".to_owned(),
        "long.replace('x', 'xxxxxxxxxxxx') != ''".to_owned(),
        "long.replace('', 'xxxxxxxxxxxx') != ''".to_owned(),
        "long.split('') != []".to_owned(),
        "long.findAll('x') != []".to_owned(),
        "numbers.map(a, 'x').join(long.substring(99000)) != ''".to_owned(),
        "lists.range(100000) != []".to_owned(),
        "'%s'.format([numbers.map(a, numbers)]) != ''".to_owned(),
        "numbers.filter(a, a < 100).map(a, numbers).flatten() != []".to_owned(),
        "base64.encode(bytes(long + long)) != ''".to_owned(),
    ] {
        let meter = Meter::new(10_000_000).with_memory(limit);
        let outcome = evaluate(&Program::parse(&text).unwrap(), &object(), &meter);
        assert_eq!(outcome, Err(EvaluationError::OutOfMemory { limit }), "{text}");
    }
    for text in [
        // The memory of an iteration is released at its end.
        "numbers.all(a, (long + string(a)).size() > 0)",
        "numbers.filter(a, (long + string(a)).size() > 100001).size() == 990",
        "numbers.exists_one(a, long + 'x' == long) || true",
        "numbers.map(a, a + 1).map(a, a * 2).filter(a, a > 2).size() == 999",
    ] {
        let meter = Meter::new(100_000_000).with_memory(limit);
        let outcome = evaluate(&Program::parse(text).unwrap(), &object(), &meter);
        assert_eq!((outcome, meter.memory()), (Ok(Value::Bool(true)), 0), "{text}");
    }
}

#[test]
fn values_that_share_their_parts_cost_what_they_look_like() {
    let shared = "[1].map(s, [s, s, s, s])".to_owned() + &".map(s, [s, s, s, s])".repeat(11);
    for text in [
        format!("{shared} == {shared}"),
        format!("optional.of({shared}) == optional.of({shared})"),
        format!("{shared}.indexOf(1) == 0"),
        format!("'%s'.format([optional.of({shared})]) == ''"),
        format!("[{shared}].sum() == 0"),
        format!("int({shared}) == 0"),
    ] {
        assert_eq!(evaluated(&text, 1_000_000).0, Err(EvaluationError::Exhausted), "{text}");
    }
}

#[test]
fn an_exceeded_budget_is_final() {
    for text in ["numbers.map(a, long + long) != [] || true", "!(numbers.map(a, long + long) != [] && false)"] {
        let meter = Meter::new(1_000_000_000).with_memory(1 << 20);
        let outcome = evaluate(&Program::parse(text).unwrap(), &object(), &meter);
        assert!(outcome.is_err_and(|error| error.is_final()), "{text}");
        assert!(meter.charge(0).is_err());
    }
}

#[test]
fn map_costs_as_much_as_its_list() {
    let (outcome, used) = evaluated("numbers.map(a, a).filter(a, a > 10).size() == 989", 1_000_000);
    assert_eq!(outcome, Ok(Value::Bool(true)));
    assert!(used < 20_000, "{used}");
}

#[test]
fn a_function_that_panics_is_an_error() {
    let outcome = library::call("charAt", None, Some(&Value::from("a")), &[], &Meter::new(1000));
    assert!(outcome.is_err(), "{outcome:?}");
    for name in functions::FUNCTIONS {
        for arguments in [vec![], vec![Value::Null], vec![Value::Int(i64::MIN), Value::Int(i64::MAX)]] {
            let patterns = Patterns::default();
            let meter = Meter::new(10_000);
            let _ = functions::call(name, None, &arguments, &patterns, &meter);
            let _ = functions::call(name, Some(&Value::from("a")), &arguments, &patterns, &meter);
        }
    }
}

#[test]
fn every_listed_function_exists() {
    assert!(functions::FUNCTIONS.is_sorted());
    for name in functions::FUNCTIONS {
        let unknown = Err(EvaluationError::NoSuchAttribute((*name).to_owned()));
        let call = |target: Option<&Value>, arguments: &[Value]| {
            functions::call(name, target, arguments, &Patterns::default(), &Meter::new(1000))
        };
        assert!(call(Some(&Value::Null), &[]) != unknown || call(None, &[Value::Null]) != unknown, "{name}");
    }
}

const TOKENS: &[&str] = &[
    "object",
    ".name",
    ".list",
    ".items",
    "[0]",
    "[?0]",
    "(",
    ")",
    " && ",
    " || ",
    "!",
    " == ",
    " < ",
    " + ",
    " - ",
    " / ",
    " % ",
    "'a'",
    "1",
    "2.5",
    "null",
    "[1, 2]",
    "{'a': 1}",
    ".all(x, ",
    ".exists(x, ",
    ".map(x, ",
    ".filter(x, ",
    "x",
    ".size()",
    ".?a",
    ".orValue(",
    ".matches('a+')",
    ".matches(object.name)",
    "has(object.",
    " ? ",
    " : ",
    " in ",
    ".replace('a', ",
    ".indexOf(",
    ".split(",
    ".join(",
    ".format([",
    "])",
    "string(",
    "int(",
    "type(",
    "duration(",
    "timestamp(",
    "quantity(",
    ".sum()",
    ".first()",
];

proptest::proptest! {
    #[test]
    fn nothing_panics_or_costs_too_much(
        tokens in proptest::collection::vec(proptest::sample::select(TOKENS), 1..14),
        name in ".{0,8}",
    ) {
        let (text, mut names) = (tokens.concat(), object());
        names.0["object"]["name"] = name.into();
        let meter = Meter::new(10_000);
        if let Ok(program) = Program::parse(&text) {
            let _ = evaluate(&program, &names, &meter);
        }
        proptest::prop_assert!(meter.used() <= 10_001);
    }
}
