//! What pulls and compiles components.

use chandler_content::Images;
use chandler_engine::Engine;
use chandler_source::Sources;

/// The largest component that is pulled, in bytes.
pub(super) const COMPONENT_BYTES: u64 = 64 << 20;

/// Pulls components, and compiles them.
#[derive(Clone)]
pub(crate) struct Components {
    pub(crate) engine: Engine,
    pub(crate) images: Images,
    /// Gives access to images.
    pub(crate) sources: Sources,
}
