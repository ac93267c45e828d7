//! The depth of an expression.

use cel::common::ast::{EntryExpr, Expr};

/// The depth of a tree. The interpreter recurses over it on the caller's stack.
pub fn depth(expression: &Expr) -> u32 {
    1 + children(expression).into_iter().map(depth).max().unwrap_or(0)
}

/// The nesting of the loops (`all`, `exists`, `map`, ...) of an expression. It does not bound the cost: the range of a loop may be as large as
/// a loop before it makes it.
pub fn loops(expression: &Expr) -> u32 {
    if let Expr::Comprehension(comprehension) = expression {
        let inside = [&comprehension.loop_cond, &comprehension.loop_step, &comprehension.result];
        let inside = inside.into_iter().map(|inner| loops(&inner.expr)).max().unwrap_or(0);
        return loops(&comprehension.iter_range.expr).max(inside + 1);
    }
    children(expression).into_iter().map(loops).max().unwrap_or(0)
}

/// The direct parts of an expression.
pub fn children(expression: &Expr) -> Vec<&Expr> {
    match expression {
        Expr::Comprehension(comprehension) => [
            &comprehension.iter_range,
            &comprehension.accu_init,
            &comprehension.loop_cond,
            &comprehension.loop_step,
            &comprehension.result,
        ]
        .map(|child| &child.expr)
        .to_vec(),
        Expr::Call(call) => {
            call.target.iter().map(|target| &target.expr).chain(call.args.iter().map(|child| &child.expr)).collect()
        }
        Expr::List(list) => list.elements.iter().map(|child| &child.expr).collect(),
        Expr::Select(select) => vec![&select.operand.expr],
        Expr::Map(map) => map.entries.iter().flat_map(|entry| parts(&entry.expr)).collect(),
        Expr::Struct(object) => object.entries.iter().flat_map(|entry| parts(&entry.expr)).collect(),
        _ => Vec::new(),
    }
}

fn parts(entry: &EntryExpr) -> impl Iterator<Item = &Expr> {
    let (key, value) = match entry {
        EntryExpr::MapEntry(entry) => (Some(&entry.key.expr), &entry.value.expr),
        EntryExpr::StructField(field) => (None, &field.value.expr),
    };
    key.into_iter().chain([value])
}

#[cfg(test)]
mod tests {
    use crate::{Program, depth, loops};

    #[test]
    fn loops_and_depth_are_measured() {
        for (text, nested) in [
            ("self.a == 1", 0),
            ("self.a.all(x, x > 0)", 1),
            ("self.a.all(x, x.b.exists(y, y == x))", 2),
            ("self.a.map(x, x + 1).exists(y, y == 2)", 1),
            ("{'a': self.a.all(x, x)}.a", 1),
        ] {
            assert_eq!(loops(&Program::parse(text).unwrap().expression().expr), nested, "{text}");
        }
        let of = |text: &str| depth(&Program::parse(text).unwrap().expression().expr);
        assert_eq!((of("1"), of("self.a")), (1, 2));
        assert!(of("self.a + self.b") > of("self.a"));
    }
}
