//! The index of a Helm repository.

use chandler_content::{ArchiveUrl, ChartVersion, HelmIndex, is_chart_name};

use crate::memory;

/// The buffers of the reader, and a few copies of each value.
const FIXED: usize = 4 << 20;
const PER_BYTE: usize = 1000;

/// Any text.
pub(crate) fn holds(input: &[u8]) {
    let repository: ArchiveUrl = "https://example.com/charts?token=hunter2".parse().expect("a URL");
    let versions = ["*", "^1", "1.2.3", ">=0-0"].map(|text| ChartVersion::parse(text).expect("a range"));
    memory::bounded(input, FIXED, PER_BYTE, || {
        let index = match HelmIndex::read(input) {
            Ok(index) => index,
            Err(error) => {
                let message = error.to_string();
                assert!(message.len() < 200 && message.is_ascii(), "{message}");
                return;
            }
        };
        for chart in index.charts().take(16) {
            assert!(is_chart_name(chart), "{chart:?}");
            for version in &versions {
                match index.find(&repository, chart, version) {
                    Ok((_, archive, _)) => {
                        let is_home = archive.text().starts_with("https://example.com/");
                        let is_own = input.windows(7).any(|bytes| bytes == b"hunter2");
                        assert!(
                            is_home || is_own || !archive.text().contains("hunter2"),
                            "the token leaves its server: {archive:?}"
                        );
                    }
                    Err(error) => {
                        let message = error.to_string();
                        assert!(!message.chars().any(char::is_control), "{message:?}");
                    }
                }
            }
        }
    });
}
