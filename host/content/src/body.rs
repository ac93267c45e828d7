//! Bodies that arrive in pieces.

use std::path::Path;

use bytes::Bytes;
use tokio::io::AsyncWriteExt as _;

use crate::{
    ArchiveError, ContentError, LimitExceeded, StoreError,
    store::{FILE, Room, own_file},
};

/// What a server sends.
pub(crate) trait Body {
    /// The next piece; none at the end.
    fn chunk(&mut self) -> impl Future<Output = Result<Option<Bytes>, ContentError>> + Send;
}

/// Writes a body to a new file, which takes room piece by piece. `pass` appends what is written of a piece to its second argument.
///
/// # Errors
/// The transfer fails, `pass` fails, the cache is full, or the body is longer than `most`, which is [`ContentError::Archive`].
pub(crate) async fn save(
    body: &mut impl Body,
    (path, room): (&Path, &Room),
    most: u64,
    mut pass: impl FnMut(&[u8], &mut Vec<u8>) -> Result<(), ContentError>,
) -> Result<(), ContentError> {
    room.take_for(FILE).await?;
    let mut file = tokio::fs::OpenOptions::from(own_file()).open(path).await.map_err(StoreError::at("create", path))?;
    let (mut size, mut written) = (0_u64, Vec::new());
    while let Some(chunk) = body.chunk().await? {
        size = size.saturating_add(chunk.len() as u64);
        if size > most {
            return Err(too_large(most));
        }
        written.clear();
        pass(&chunk, &mut written)?;
        room.take_for(written.len() as u64).await?;
        file.write_all(&written).await.map_err(StoreError::at("write to", path))?;
    }
    Ok(file.flush().await.map_err(StoreError::at("write to", path))?)
}

pub(crate) fn too_large(most: u64) -> ContentError {
    ArchiveError::from(LimitExceeded::ArchiveBytes(most)).into()
}
