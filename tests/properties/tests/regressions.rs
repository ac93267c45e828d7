//! Inputs that once violated a property: `tests/fuzz/regressions/<target>/<description>`.

use std::{fs, path::Path};

use chandler_properties::{TARGETS, check};

#[test]
fn every_regression_is_fixed() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/regressions");
    let mut count = 0;
    for directory in fs::read_dir(&root).unwrap() {
        let directory = directory.unwrap();
        let target = directory.file_name().into_string().unwrap();
        assert!(TARGETS.iter().any(|known| known.name == target), "regressions of no target: {target}");
        for file in fs::read_dir(directory.path()).unwrap() {
            let path = file.unwrap().path();
            // The last printed input is the failing one.
            println!("{}", path.display());
            check(&target, &fs::read(&path).unwrap());
            count += 1;
        }
    }
    assert!(count > 0, "no regressions in {}", root.display());
}
