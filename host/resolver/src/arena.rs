//! Lists whose items are known by typed numbers.

use std::{
    fmt,
    hash::{Hash, Hasher},
    marker::PhantomData,
    ops::{Index, IndexMut},
};

/// The number of an item. Only the arena that it indexes makes it.
pub(crate) struct Id<T>(u32, PhantomData<fn() -> T>);

/// A list that only grows.
#[derive(Debug)]
pub(crate) struct Arena<T>(Vec<T>);

impl<T> Default for Arena<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> Arena<T> {
    pub(crate) fn push(&mut self, item: T) -> Id<T> {
        let id = u32::try_from(self.0.len()).unwrap_or(u32::MAX);
        self.0.push(item);
        Id(id, PhantomData)
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn ids(&self) -> impl Iterator<Item = Id<T>> + use<T> {
        let count = u32::try_from(self.0.len()).unwrap_or(u32::MAX);
        (0..count).map(|id| Id(id, PhantomData))
    }
}

impl<T> Id<T> {
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

#[expect(clippy::indexing_slicing, reason = "an arena only grows, and makes the numbers that index it")]
impl<T> Index<Id<T>> for Arena<T> {
    type Output = T;

    fn index(&self, id: Id<T>) -> &T {
        &self.0[id.index()]
    }
}

#[expect(clippy::indexing_slicing, reason = "an arena only grows, and makes the numbers that index it")]
impl<T> IndexMut<Id<T>> for Arena<T> {
    fn index_mut(&mut self, id: Id<T>) -> &mut T {
        &mut self.0[id.index()]
    }
}

impl<T> Clone for Id<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Id<T> {}

impl<T> PartialEq for Id<T> {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl<T> Eq for Id<T> {}

impl<T> PartialOrd for Id<T> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Id<T> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.cmp(&other.0)
    }
}

impl<T> Hash for Id<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl<T> fmt::Debug for Id<T> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{}", self.0)
    }
}
