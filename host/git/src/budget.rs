//! Limits on packs and trees, for one part of them and for all parts together.

/// Limits on the packs of one checkout, and on its directories.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PackLimits {
    /// The objects of a pack: files, directories, commits and tags.
    pub objects: u32,
    /// The bytes of one object.
    pub object_bytes: u64,
    /// The bytes of objects that are in memory at the same time: delta bases, and the directories above a file.
    /// It also bounds one allocation, so it must be at least three times the limit for an object.
    pub alive_bytes: u64,
    /// The bytes of all objects of all packs, each made once.
    pub all_bytes: u64,
    /// The bytes of objects that are made while directories are walked, those from which they are made included. An object that is
    /// in many directories is made for each.
    pub work_bytes: u64,
    /// The bytes of a path below the root of the repository.
    pub path_bytes: usize,
}
