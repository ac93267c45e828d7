//! Sorting on the disk: pairs of keys and values, a bounded part of them in memory.

use std::{
    cmp::Reverse,
    collections::BinaryHeap,
    fs::File,
    io::{self, BufReader, BufWriter, Read, Seek as _, SeekFrom, Write as _},
    path::PathBuf,
};

/// Bytes of memory that a pair takes beside its own.
const OVERHEAD: usize = 64;
/// Runs that are merged at once, each with a buffer.
const RUNS: usize = 64;
/// The buffer of one run.
const BUFFER: usize = 16 << 10;

type Pair = (Vec<u8>, Vec<u8>);

/// Sorts pairs by their keys.
pub(super) struct Sorter {
    directory: PathBuf,
    /// The bytes that it may keep in memory.
    budget: usize,
    pairs: Vec<Pair>,
    bytes: usize,
    /// Sorted pairs, in files without names.
    runs: Vec<File>,
}

impl Sorter {
    pub(super) fn new(directory: impl Into<PathBuf>, budget: usize) -> Self {
        Self { directory: directory.into(), budget, pairs: Vec::new(), bytes: 0, runs: Vec::new() }
    }

    pub(super) fn push(&mut self, key: Vec<u8>, value: Vec<u8>) -> io::Result<()> {
        self.bytes += key.len() + value.len() + OVERHEAD;
        self.pairs.push((key, value));
        if self.bytes > self.budget { self.spill() } else { Ok(()) }
    }

    /// Passes all pairs on, in the order of their keys; equal keys in the order of their values.
    pub(super) fn finish<E: From<io::Error>>(
        mut self,
        mut visit: impl FnMut(&[u8], &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        self.pairs.sort_unstable();
        if self.runs.is_empty() {
            return self.pairs.iter().try_for_each(|(key, value)| visit(key, value));
        }
        self.spill()?;
        let runs = std::mem::take(&mut self.runs);
        merge(runs, &mut visit)
    }

    fn spill(&mut self) -> io::Result<()> {
        if self.pairs.is_empty() {
            return Ok(());
        }
        if self.runs.len() >= RUNS {
            let mut run = BufWriter::with_capacity(BUFFER, tempfile::tempfile_in(&self.directory)?);
            merge(std::mem::take(&mut self.runs), &mut |key, value| write(&mut run, key, value))?;
            self.runs.push(rewound(run)?);
        }
        self.pairs.sort_unstable();
        let mut run = BufWriter::with_capacity(BUFFER, tempfile::tempfile_in(&self.directory)?);
        for (key, value) in self.pairs.drain(..) {
            write(&mut run, &key, &value)?;
        }
        self.bytes = 0;
        self.runs.push(rewound(run)?);
        Ok(())
    }
}

fn rewound(run: BufWriter<File>) -> io::Result<File> {
    let mut file = run.into_inner().map_err(io::IntoInnerError::into_error)?;
    file.seek(SeekFrom::Start(0))?;
    Ok(file)
}

fn merge<E: From<io::Error>>(runs: Vec<File>, visit: &mut impl FnMut(&[u8], &[u8]) -> Result<(), E>) -> Result<(), E> {
    let mut readers: Vec<_> = runs.into_iter().map(|run| BufReader::with_capacity(BUFFER, run)).collect();
    let mut heap = BinaryHeap::new();
    for (at, reader) in readers.iter_mut().enumerate() {
        heap.extend(read(reader)?.map(|pair| Reverse((pair, at))));
    }
    while let Some(Reverse(((key, value), at))) = heap.pop() {
        visit(&key, &value)?;
        if let Some(reader) = readers.get_mut(at) {
            heap.extend(read(reader)?.map(|pair| Reverse((pair, at))));
        }
    }
    Ok(())
}

fn write(run: &mut BufWriter<File>, key: &[u8], value: &[u8]) -> io::Result<()> {
    for part in [key, value] {
        let length = u32::try_from(part.len()).map_err(io::Error::other)?;
        run.write_all(&length.to_le_bytes())?;
        run.write_all(part)?;
    }
    Ok(())
}

fn read(run: &mut BufReader<File>) -> io::Result<Option<Pair>> {
    let mut length = [0; 4];
    match run.read_exact(&mut length) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        other => other?,
    }
    let key = part(run, length)?;
    run.read_exact(&mut length)?;
    Ok(Some((key, part(run, length)?)))
}

fn part(run: &mut BufReader<File>, length: [u8; 4]) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; u32::from_le_bytes(length) as usize];
    run.read_exact(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn sorts_as_in_memory(pairs: Vec<(Vec<u8>, Vec<u8>)>, budget in 0_usize..2000) {
            let directory = tempfile::tempdir().unwrap();
            let mut sorter = Sorter::new(directory.path(), budget);
            for (key, value) in &pairs {
                sorter.push(key.clone(), value.clone()).unwrap();
            }
            let mut found = Vec::new();
            sorter.finish(|key, value| {
                found.push((key.to_vec(), value.to_vec()));
                io::Result::Ok(())
            }).unwrap();
            let mut expected = pairs;
            expected.sort();
            prop_assert_eq!(found, expected);
        }
    }

    #[test]
    fn many_runs_are_merged_in_steps() {
        let directory = tempfile::tempdir().unwrap();
        let mut sorter = Sorter::new(directory.path(), 0);
        for number in (0..300_u32).rev() {
            sorter.push(number.to_be_bytes().to_vec(), vec![]).unwrap();
            assert!(sorter.runs.len() <= RUNS + 1);
        }
        let mut numbers = Vec::new();
        let collect = |key: &[u8], _: &[u8]| {
            numbers.push(u32::from_be_bytes(key.try_into().unwrap()));
            io::Result::Ok(())
        };
        sorter.finish(collect).unwrap();
        assert_eq!(numbers, (0..300).collect::<Vec<_>>());
    }
}
