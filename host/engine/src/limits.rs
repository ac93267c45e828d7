//! The limits of one call of a provisioner.

use std::time::Duration;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// The most bytes that one read of a file returns, as the contract guarantees.
pub(crate) const READ_BYTES: u32 = 1 << 20;

/// The limits of one call of a provisioner.
///
/// A provisioner never chooses its own limits: an administrator sets them, within the ceiling of the controller
/// ([`Limits::bounded_by`]).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// What one call may compute, and wait for clocks of its own, excluding the wait for a free thread or processor. Default 10 s. A call
    /// that takes 30 times as long on the wall without using it up is ended, too, and is retried.
    pub time: Duration,
    /// Total bytes of all linear memories. Default 256 MiB.
    pub memory: u64,
    /// Total elements of all tables. Default 20 000.
    pub table_elements: u64,
    /// The number of linear memories, and separately of tables. Default 8.
    pub memories: u32,
    /// The number of core instances. Default 64.
    pub instances: u32,
    /// The number of handles that a guest may hold. Default 1000.
    pub handles: u32,
    /// Bytes that the guest may pass to the host in one host call or result. Default 8 MiB.
    pub transfer_bytes: u64,
    /// Bytes of one object as JSON. Default 3 MiB, the request limit of the API server (`MaxRequestBodyBytes`);
    /// published CustomResourceDefinitions have up to 1.2 MiB.
    pub object_bytes: u64,
    /// Total bytes of all objects as JSON. Default 32 MiB.
    pub output_bytes: u64,
    /// The number of objects. Default 5000.
    pub objects: u32,
    /// The number of probes. Default 200.
    pub probes: u32,
    /// Bytes that may be read from any bundle, however small. Default 64 MiB. The read limit is the larger of this and
    /// [`read_factor`](Self::read_factor) times the size of the bundle.
    pub read_bytes: u64,
    /// How many times the whole bundle may be read. Default 4.
    pub read_factor: u32,
    /// The number of findings; further ones are dropped, and a last finding counts them. Default 200.
    pub diagnostics: u32,
    /// Bytes of log messages and captured output; the rest is dropped. Default 256 KiB.
    pub log_bytes: u64,
    /// Lines of log messages and captured output; the rest is dropped. Default 1000.
    pub log_lines: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            time: Duration::from_secs(10),
            memory: 256 * MIB,
            table_elements: 20_000,
            memories: 8,
            instances: 64,
            handles: 1000,
            transfer_bytes: 8 * MIB,
            object_bytes: 3 * MIB,
            output_bytes: 32 * MIB,
            objects: 5000,
            probes: 200,
            read_bytes: 64 * MIB,
            read_factor: 4,
            diagnostics: 200,
            log_bytes: 256 * KIB,
            log_lines: 1000,
        }
    }
}

impl Limits {
    /// These limits, each lowered to the ceiling's.
    pub fn bounded_by(&self, ceiling: &Self) -> Self {
        Self {
            time: self.time.min(ceiling.time),
            memory: self.memory.min(ceiling.memory),
            table_elements: self.table_elements.min(ceiling.table_elements),
            memories: self.memories.min(ceiling.memories),
            instances: self.instances.min(ceiling.instances),
            handles: self.handles.min(ceiling.handles),
            transfer_bytes: self.transfer_bytes.min(ceiling.transfer_bytes),
            object_bytes: self.object_bytes.min(ceiling.object_bytes),
            output_bytes: self.output_bytes.min(ceiling.output_bytes),
            objects: self.objects.min(ceiling.objects),
            probes: self.probes.min(ceiling.probes),
            read_bytes: self.read_bytes.min(ceiling.read_bytes),
            read_factor: self.read_factor.min(ceiling.read_factor),
            diagnostics: self.diagnostics.min(ceiling.diagnostics),
            log_bytes: self.log_bytes.min(ceiling.log_bytes),
            log_lines: self.log_lines.min(ceiling.log_lines),
        }
    }

    /// The read limit for a bundle of this size.
    pub(crate) fn read_budget(&self, total_bytes: u64) -> u64 {
        total_bytes.saturating_mul(u64::from(self.read_factor)).max(self.read_bytes)
    }
}

/// The limits that [`CallError::LimitExceeded`](crate::CallError::LimitExceeded) reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LimitKind {
    /// [`Limits::object_bytes`].
    ObjectBytes,
    /// [`Limits::output_bytes`].
    OutputBytes,
    /// JSON values in all objects; fixed at two million.
    OutputValues,
    /// [`Limits::objects`].
    Objects,
    /// [`Limits::probes`].
    Probes,
    /// [`Limits::read_bytes`] and [`Limits::read_factor`].
    ReadBytes,
    /// [`Limits::transfer_bytes`].
    TransferBytes,
    /// [`Limits::handles`].
    Handles,
    /// [`Limits::table_elements`].
    TableElements,
    /// [`Limits::instances`].
    Instances,
    /// [`Limits::memories`], of linear memories.
    Memories,
    /// [`Limits::memories`], of tables.
    Tables,
    /// Instances of a component, counted through all nesting; fixed at 1000.
    ExpandedInstances,
    /// Items of the component's sections, counted through all nesting; fixed at 200 000.
    ExpandedItems,
    /// Bytes of one probe; fixed at 16 KiB.
    ProbeBytes,
    /// Bytes of the JSON Schema that `config-schema` returns; fixed at 1 MiB.
    SchemaBytes,
}

impl LimitKind {
    /// The limited quantity, for messages.
    pub fn subject(self) -> &'static str {
        match self {
            Self::ObjectBytes => "bytes in one object",
            Self::OutputBytes => "bytes in all objects",
            Self::OutputValues => "values in all objects",
            Self::Objects => "objects",
            Self::Probes => "probes",
            Self::ReadBytes => "bytes read from the bundle",
            Self::TransferBytes => "bytes in one transfer to the host",
            Self::Handles => "handles",
            Self::TableElements => "table elements",
            Self::Instances => "core instances",
            Self::Memories => "linear memories",
            Self::Tables => "tables",
            Self::ExpandedInstances => "instances after expansion",
            Self::ExpandedItems => "items after expansion",
            Self::ProbeBytes => "bytes in one probe",
            Self::SchemaBytes => "bytes in the configuration schema",
        }
    }
}

/// A number of bytes in the largest unit that divides it, such as `256 MiB`, else in bytes.
pub(crate) fn bytes(count: u64) -> String {
    match count {
        0 => "0 bytes".to_owned(),
        count if count.is_multiple_of(1 << 30) => format!("{} GiB", count >> 30),
        count if count.is_multiple_of(MIB) => format!("{} MiB", count >> 20),
        count if count.is_multiple_of(KIB) => format!("{} KiB", count >> 10),
        count => format!("{count} bytes"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ceiling_bounds_every_limit() {
        let one = Duration::from_secs(1);
        let small = Limits {
            time: one,
            memory: 1,
            table_elements: 1,
            memories: 1,
            instances: 1,
            handles: 1,
            transfer_bytes: 1,
            object_bytes: 1,
            output_bytes: 1,
            objects: 1,
            probes: 1,
            read_bytes: 1,
            read_factor: 1,
            diagnostics: 1,
            log_bytes: 1,
            log_lines: 1,
        };
        assert_eq!(Limits::default().bounded_by(&small), small);
        assert_eq!(small.bounded_by(&Limits::default()), small);
    }

    #[test]
    fn small_bundles_have_a_minimum_read_limit() {
        let limits = Limits::default();
        assert_eq!(limits.read_budget(1), 64 * MIB);
        assert_eq!(limits.read_budget(100 * MIB), 400 * MIB);
        assert_eq!(limits.read_budget(u64::MAX), u64::MAX);
    }

    #[test]
    fn bytes_are_written_in_the_largest_unit_that_fits() {
        let texts: Vec<String> = [0, 1, 1024, 1536, 256 * MIB, 2 << 30].into_iter().map(bytes).collect();
        assert_eq!(texts, ["0 bytes", "1 bytes", "1 KiB", "1536 bytes", "256 MiB", "2 GiB"]);
    }
}
