//! Encodes and decodes a record: `chandler record 1`, a line feed, and gzipped JSON. Pure.

use std::io::{self, Read as _, Write as _};

use flate2::{Compression, read::GzDecoder, write::GzEncoder};

use crate::state::State;

/// Identifies the format. Increment when the meaning of the content changes.
const MAGIC: &[u8] = b"chandler record 1\n";

/// The largest decompressed record: some hundred thousand objects.
const TEXT_BYTES: u64 = 64 << 20;

/// Encodes a record.
pub(crate) fn encode(state: &State) -> io::Result<Vec<u8>> {
    let mut to = GzEncoder::new(MAGIC.to_vec(), Compression::default());
    to.write_all(&serde_json::to_vec(state)?)?;
    to.finish()
}

/// Decodes a record; the error describes what is wrong.
pub(crate) fn decode(bytes: &[u8]) -> Result<State, String> {
    let text = bytes.strip_prefix(MAGIC).ok_or("its format is unknown")?;
    let mut json = Vec::new();
    GzDecoder::new(text).take(TEXT_BYTES).read_to_end(&mut json).map_err(|error| error.to_string())?;
    serde_json::from_slice(&json).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use chandler_api::Revision;
    use chandler_core::Digest;
    use chandler_rollout::{Holdings, Intent, ObjectId, Seal};
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_record_of_ten_thousand_objects_round_trips_and_fits_into_a_secret() {
        let id = |number: usize| ObjectId {
            group: "apps".into(),
            kind: "Deployment".into(),
            namespace: Some("some-namespace".into()),
            name: format!("some-object-{number}"),
        };
        let uid = |number: usize| {
            let hash = Digest::of(number.to_string().as_bytes());
            format!(
                "{}-{}-{}-{}-{}",
                &hash.hex()[..8],
                &hash.hex()[8..12],
                &hash.hex()[12..16],
                &hash.hex()[16..20],
                &hash.hex()[20..32]
            )
        };
        let adopted = (0..10_000).map(|number| (id(number), uid(number))).collect();
        let holdings = Holdings::new("u", Seal::new([3; 32])).intending(&Intent { adopted, ..Intent::default() });
        let mut state = State::new("a", holdings);
        state.history = vec![Revision { number: 1, ..Revision::default() }];
        state.releases.insert(Digest::of(b"x"), 2);
        let bytes = encode(&state).unwrap();
        assert!(bytes.len() < 1 << 20, "{}", bytes.len());
        assert_eq!(decode(&bytes).unwrap(), state);
    }

    proptest! {
        #[test]
        fn nothing_panics(mut bytes in prop::collection::vec(any::<u8>(), 0..64), begins in any::<bool>()) {
            if begins {
                bytes.splice(0..0, MAGIC.iter().copied());
            }
            prop_assert!(decode(&bytes).is_err());
        }
    }
}
