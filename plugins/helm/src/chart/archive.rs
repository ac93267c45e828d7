//! Reading a chart's archive, `.tgz`.

use std::io::Read as _;

use flate2::read::GzDecoder;

use super::{File, load::Budget};

/// The files of an archive, relative to the directory that a chart's archive consists of.
pub(super) fn files(bytes: &[u8], budget: &mut Budget) -> Result<Vec<File>, String> {
    let mut text = Vec::new();
    let limit = budget.bytes_left();
    // The archive is as large as its files, plus their heads; a little more than is left must be refused.
    let most = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(8 << 20);
    GzDecoder::new(bytes)
        .take(most)
        .read_to_end(&mut text)
        .map_err(|error| format!("the archive cannot be read: {error}"))?;
    let mut rest = text.as_slice();
    let mut files = Vec::new();
    let mut long_name: Option<String> = None;
    while let Some((head, after)) = rest.split_at_checked(512) {
        if head.iter().all(|byte| *byte == 0) {
            break;
        }
        let size =
            number(head.get(124..136).unwrap_or_default()).ok_or("the size of a file in the archive is wrong")?;
        let (data, behind) = after.split_at_checked(size).ok_or("the archive ends within a file")?;
        rest = behind.get((512 - size % 512) % 512..).unwrap_or_default();
        let kind = head.get(156).copied().unwrap_or_default();
        match kind {
            // Extended heads: a long name, in the form of pax or of GNU tar.
            b'x' => long_name = pax_path(data).or(long_name),
            b'L' => long_name = Some(string(data)),
            b'0' | 0 | b'7' => {
                let name = long_name.take().unwrap_or_else(|| ustar_name(head));
                if let Some(name) = inner(&name)? {
                    budget.take(data.len())?;
                    let data = data.strip_prefix(b"\xef\xbb\xbf").unwrap_or(data);
                    files.push(File::new(name, data));
                }
            }
            _ if kind == b'g' => {}
            _ => long_name = None,
        }
    }
    if files.is_empty() {
        return Err("no files in chart archive".to_owned());
    }
    Ok(files)
}

fn string(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(bytes.get(..end).unwrap_or_default()).into_owned()
}

fn number(bytes: &[u8]) -> Option<usize> {
    if bytes.first().is_some_and(|byte| byte & 0x80 != 0) {
        // In base 256.
        return bytes.iter().enumerate().try_fold(0_usize, |value, (at, byte)| {
            let byte = if at == 0 { byte & 0x7f } else { *byte };
            value.checked_mul(256)?.checked_add(usize::from(byte))
        });
    }
    let text = string(bytes);
    let digits = text.trim_matches([' ', '\0']);
    if digits.is_empty() { Some(0) } else { usize::from_str_radix(digits, 8).ok() }
}

fn ustar_name(head: &[u8]) -> String {
    let name = string(head.get(..100).unwrap_or_default());
    if head.get(257..262) != Some(b"ustar") || head.get(257..265) == Some(b"ustar  \0") {
        return name;
    }
    let prefix = string(head.get(345..500).unwrap_or_default());
    if prefix.is_empty() { name } else { format!("{prefix}/{name}") }
}

fn pax_path(data: &[u8]) -> Option<String> {
    let mut rest = data;
    let mut path = None;
    while !rest.is_empty() {
        let space = rest.iter().position(|byte| *byte == b' ')?;
        let length: usize = std::str::from_utf8(rest.get(..space)?).ok()?.parse().ok()?;
        let record = rest.get(space + 1..length.checked_sub(1)?)?;
        if let Some(value) = record.strip_prefix(b"path=") {
            path = Some(String::from_utf8_lossy(value).into_owned());
        }
        rest = rest.get(length..)?;
    }
    path
}

/// The path without its first part. Nothing for a directory.
fn inner(name: &str) -> Result<Option<String>, String> {
    if name.ends_with('/') {
        return Ok(None);
    }
    if name == "Chart.yaml" {
        return Err("chart yaml not in base directory".to_owned());
    }
    let delimited = if name.contains('\\') && !name.contains('/') { name.replace('\\', "/") } else { name.to_owned() };
    let rest = delimited.split_once('/').map_or("", |(_, rest)| rest);
    if rest.starts_with('/') {
        return Err("chart illegally contains absolute paths".to_owned());
    }
    let clean = crate::functions::clean_path(rest);
    if clean == "." || clean.starts_with("..") {
        return Err("chart illegally contains content outside the base directory".to_owned());
    }
    Ok(Some(clean))
}
