//! The desired number of Pods of each ReplicaSet of a Deployment: numbers only.

use serde_json::Value;

use crate::workloads::fields::{replicas, scaled, text};

/// The sizes that a Deployment requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Limits {
    pub(super) replicas: i64,
    pub(super) rolling: bool,
    /// How many Pods more than requested there may be.
    pub(super) surge: i64,
    /// How many Pods fewer than requested may be available.
    pub(super) unavailable: i64,
}

impl Limits {
    /// Reads the strategy (`ResolveFenceposts`): both limits at zero would never end, so one Pod may be missing then.
    pub(super) fn of(deployment: &Value) -> Self {
        let replicas = replicas(deployment);
        let rolling = text(deployment, "/spec/strategy/type") != "Recreate";
        if !rolling {
            return Self { replicas, rolling, surge: 0, unavailable: 0 };
        }
        let limit = |field: &str, round_up: bool| {
            scaled(deployment.pointer(&format!("/spec/strategy/rollingUpdate/{field}")), replicas, round_up).max(0)
        };
        let surge = limit("maxSurge", true);
        let unavailable = limit("maxUnavailable", false);
        let unavailable = if surge == 0 && unavailable == 0 { 1 } else { unavailable };
        Self { replicas, rolling, surge, unavailable: unavailable.min(replicas) }
    }

    /// The most Pods that there may be.
    pub(super) fn most(&self) -> i64 {
        self.replicas + self.surge
    }

    fn least_available(&self) -> i64 {
        self.replicas - self.unavailable
    }
}

/// The size of a ReplicaSet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Size {
    /// The desired number of Pods.
    pub(super) wanted: i64,
    /// The available Pods that must stay.
    pub(super) available: i64,
    /// The most Pods that its Deployment could have when it was last scaled.
    pub(super) most: Option<i64>,
}

fn total(sizes: &[Size]) -> i64 {
    sizes.iter().map(|size| size.wanted).sum()
}

/// How large the new ReplicaSet may be, given all sizes together (`NewRSNewReplicas`).
pub(super) fn grown(limits: &Limits, new: i64, all: i64) -> i64 {
    if !limits.rolling {
        return limits.replicas;
    }
    let room = (limits.most() - all).max(0);
    new + room.min(limits.replicas - new).max(0)
}

/// The next size of the new ReplicaSet in a rolling update; `None` when it has its size or must wait.
pub(super) fn next_new(limits: &Limits, new: Size, old: &[Size]) -> Option<i64> {
    let next =
        if new.wanted > limits.replicas { limits.replicas } else { grown(limits, new.wanted, new.wanted + total(old)) };
    (next != new.wanted).then_some(next)
}

/// The next sizes of the old ReplicaSets, oldest first, in a rolling update: first those shrink that have Pods which are
/// not available, then all, as far as enough Pods stay available.
pub(super) fn next_old(limits: &Limits, new: Size, old: &[Size]) -> Vec<i64> {
    let mut sizes: Vec<i64> = old.iter().map(|size| size.wanted).collect();
    let missing = (new.wanted - new.available).max(0);
    let mut unhealthy = new.wanted + total(old) - limits.least_available() - missing;
    if unhealthy <= 0 {
        return sizes;
    }
    for (size, set) in sizes.iter_mut().zip(old) {
        let fewer = (*size - set.available).clamp(0, unhealthy.max(0));
        *size -= fewer;
        unhealthy -= fewer;
    }
    let available = new.available + old.iter().map(|set| set.available).sum::<i64>();
    let mut spare = available - limits.least_available();
    for size in &mut sizes {
        let fewer = (*size).clamp(0, spare.max(0));
        *size -= fewer;
        spare -= fewer;
    }
    sizes
}

/// Sizes in proportion when a Deployment is scaled while more than one ReplicaSet has Pods. The sizes come newest first;
/// leftovers go to the largest.
pub(super) fn in_proportion(limits: &Limits, sizes: &[Size], status_replicas: i64) -> Vec<i64> {
    let allowed = if limits.replicas > 0 { limits.most() } else { 0 };
    let to_add = allowed - total(sizes);
    let mut next: Vec<i64> = sizes.iter().map(|size| size.wanted).collect();
    if to_add == 0 {
        return next;
    }
    let mut order: Vec<usize> = (0..sizes.len()).collect();
    if to_add < 0 {
        order.reverse();
    }
    // Stable: among equals the newer grow first and the older shrink first.
    order.sort_by_key(|index| std::cmp::Reverse(sizes.get(*index).map_or(0, |size| size.wanted)));
    let mut added = 0;
    for index in &order {
        let (Some(size), Some(next)) = (sizes.get(*index), next.get_mut(*index)) else { continue };
        let share = share(limits, size, status_replicas);
        let left = to_add - added;
        let share = if to_add > 0 { share.min(left) } else { share.max(left) };
        *next += share;
        added += share;
    }
    if let Some(largest) = order.first().and_then(|index| next.get_mut(*index)) {
        *largest = (*largest + to_add - added).max(0);
    }
    next
}

/// How much a ReplicaSet grows or shrinks with its Deployment (`getReplicaSetFraction`).
fn share(limits: &Limits, size: &Size, status_replicas: i64) -> i64 {
    if limits.replicas == 0 {
        return -size.wanted;
    }
    let before = size.most.filter(|most| *most > 0).unwrap_or(status_replicas);
    if before <= 0 {
        return 0;
    }
    // Rounded half up; sizes are never negative.
    (2 * size.wanted * limits.most() + before).div_euclid(2 * before) - size.wanted
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn size(wanted: i64, available: i64) -> Size {
        Size { wanted, available, most: None }
    }

    fn limits(replicas: i64, surge: i64, unavailable: i64) -> Limits {
        Limits { replicas, rolling: true, surge, unavailable }
    }

    #[test]
    fn limits_round_as_upstream_does() {
        let deployment = |replicas: i64, surge: Value, unavailable: Value| {
            json!({"spec": {"replicas": replicas, "strategy": {"type": "RollingUpdate", "rollingUpdate": {
                "maxSurge": surge, "maxUnavailable": unavailable}}}})
        };
        let cases = [
            (deployment(10, json!("25%"), json!("25%")), (3, 2)),
            (deployment(1, json!("25%"), json!("25%")), (1, 0)),
            (deployment(3, json!(0), json!(0)), (0, 1)),
            (deployment(3, json!(0), json!("10%")), (0, 1)),
            (deployment(2, json!(1), json!(5)), (1, 2)),
            (deployment(0, json!("25%"), json!("25%")), (0, 0)),
            (json!({"spec": {"replicas": 4, "strategy": {"type": "Recreate"}}}), (0, 0)),
        ];
        for (deployment, expected) in cases {
            let limits = Limits::of(&deployment);
            assert_eq!((limits.surge, limits.unavailable), expected, "{deployment}");
        }
    }

    #[test]
    fn a_rolling_update_proceeds_step_by_step() {
        // The example in upstream's comment: ten replicas, three more, two fewer.
        let limits = limits(10, 3, 2);
        assert_eq!(next_new(&limits, size(0, 0), &[size(10, 10)]), Some(3));
        assert_eq!(next_new(&limits, size(3, 0), &[size(10, 10)]), None);
        assert_eq!(next_old(&limits, size(3, 0), &[size(10, 10)]), [8]);
        assert_eq!(next_new(&limits, size(3, 0), &[size(8, 8)]), Some(5));
        assert_eq!(next_old(&limits, size(5, 0), &[size(8, 8)]), [8], "the new ones must come up first");
        assert_eq!(next_old(&limits, size(5, 0), &[size(8, 7)]), [8], "a lost node makes it no worse");
        assert_eq!(next_old(&limits, size(5, 0), &[size(8, 8), size(0, 0)]), [8, 0]);
        assert_eq!(
            next_old(&limits, size(0, 0), &[size(8, 8), size(5, 0)]),
            [8, 0],
            "those that never came up go first"
        );
        assert_eq!(next_new(&limits, size(12, 12), &[]), Some(10));
    }

    #[test]
    fn scaling_in_the_midst_of_a_rollout_keeps_the_proportions() {
        let sized = |wanted: i64, most: i64| Size { wanted, available: wanted, most: Some(most) };
        let cases = [
            (limits(30, 0, 1), vec![sized(2, 15), sized(13, 15)], vec![4, 26]),
            (limits(5, 0, 1), vec![sized(2, 15), sized(13, 15)], vec![1, 4]),
            (limits(0, 3, 1), vec![sized(2, 15), sized(13, 15)], vec![0, 0]),
            (limits(15, 0, 1), vec![sized(2, 15), sized(13, 15)], vec![2, 13]),
            (limits(7, 0, 1), vec![sized(3, 6), sized(3, 6)], vec![4, 3]),
        ];
        for (limits, sizes, expected) in cases {
            assert_eq!(in_proportion(&limits, &sizes, 15), expected, "{limits:?}");
        }
    }

    proptest! {
        /// Whatever gets available in whatever order: enough stay available, never too many exist, and it ends.
        #[test]
        fn a_rolling_update_keeps_its_promises_and_ends(
            replicas in 1_i64..30,
            surge in 0_i64..10,
            unavailable in 0_i64..10,
            new in 0_i64..10,
            readiness in prop::collection::vec(0_i64..8, 1..20),
        ) {
            let unavailable = if surge == 0 { unavailable.max(1) } else { unavailable };
            let limits = limits(replicas, surge, unavailable.min(replicas));
            let new = new.min(surge).min(replicas);
            let (mut new, mut old) = (size(new, 0), [size(replicas, replicas)]);
            let mut rounds = readiness.iter().cycle();
            for round in 0..400 {
                if let Some(wanted) = next_new(&limits, new, &old) {
                    prop_assert!(wanted > new.wanted);
                    new.wanted = wanted;
                } else {
                    let next = next_old(&limits, new, &old);
                    for (set, wanted) in old.iter_mut().zip(next) {
                        prop_assert!(wanted <= set.wanted);
                        *set = size(wanted, set.available.min(wanted));
                    }
                }
                prop_assert!(new.wanted + old[0].wanted <= limits.most());
                prop_assert!(new.available + old[0].available >= limits.replicas - limits.unavailable);
                let ready = rounds.next().copied().unwrap_or(1).max(i64::from(round % 3 == 0));
                new.available = (new.available + ready).min(new.wanted);
                if new.available == replicas && old[0].wanted == 0 {
                    return Ok(());
                }
            }
            prop_assert!(false, "it did not end: {new:?} {old:?}");
        }

        #[test]
        fn proportional_scaling_uses_exactly_the_allowed_size(
            replicas in 0_i64..40,
            surge in 0_i64..10,
            wanted in prop::collection::vec(1_i64..20, 2..5),
        ) {
            let limits = limits(replicas, surge, 1);
            let sizes: Vec<Size> = wanted.iter().map(|wanted| size(*wanted, *wanted)).collect();
            let next = in_proportion(&limits, &sizes, wanted.iter().sum());
            prop_assert!(next.iter().all(|size| *size >= 0));
            let allowed = if replicas > 0 { limits.most() } else { 0 };
            prop_assert_eq!(next.iter().sum::<i64>(), allowed);
        }
    }
}
