//! A process without free file descriptors says so, and does not blame the registry.

use std::{fs::File, os::fd::AsRawFd as _};

use chandler_content::{ArchiveUrl, FailureClass, ImageAccess, ImageOptions, Images, Limits, RepositoryUrl, Store};
use chandler_git::Revision;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::net::TcpListener;

#[tokio::test]
async fn a_source_reports_the_exhausted_file_descriptors() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(&directory.path().join("content"), Limits::default()).unwrap();
    let images = Images::new(store, ImageOptions::default());
    // A server that listens, so that only a descriptor is missing.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = listener.local_addr().unwrap().to_string();
    let image = format!("{server}/a/b:v1").parse().unwrap();
    let archive: ArchiveUrl = format!("http://{server}/a.tgz").parse().unwrap();
    let repository: RepositoryUrl = format!("http://{server}/a.git").parse().unwrap();
    let access = ImageAccess::default();

    // The lowest free one; all below are in use.
    let limit = u64::try_from(File::open("/dev/null").unwrap().as_raw_fd()).unwrap();
    let unlimited = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: Some(limit), ..unlimited }).unwrap();
    let errors = [
        images.resolve(&image, &access).await.unwrap_err(),
        images.archives().resolve(&archive, &access).await.unwrap_err(),
        images.repositories().resolve(&repository, &Revision::Branch("main".to_owned()), &access).await.unwrap_err(),
    ];
    let texts = errors.each_ref().map(ToString::to_string);
    setrlimit(Resource::Nofile, unlimited).unwrap();
    for (error, text) in errors.into_iter().zip(texts) {
        let expected = format!("this process has used all of its {limit} file descriptors");
        assert!(text.contains(&expected), "{text}");
        assert_eq!((error.class(), error.silent_registry()), (FailureClass::Transient, None), "{error}");
    }
}
