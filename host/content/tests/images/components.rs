//! Components of provisioners.

use chandler_content::{FailureClass, ResolvedImage, component_tree};
use chandler_core::Digest;
use chandler_devregistry::{Fault, FaultOn, Image, Layer, Options};

use crate::images::setup::setup;

#[tokio::test]
async fn components_are_one_layer_of_wasm() {
    let setup = setup(Options::default()).await;
    setup.registry.push_component("plugin", "v1", b"\0asm".to_vec()).unwrap();
    let image = setup.resolve("plugin:v1").await.unwrap();
    let fetch = async |image: &ResolvedImage, most| setup.images.fetch_component(image, &setup.access, most).await;
    let error = fetch(&image, 3).await.unwrap_err();
    assert!(error.to_string().ends_with("its component is larger than 3 bytes"), "{error}");
    assert_eq!(fetch(&image, 4).await.unwrap(), b"\0asm");
    // From the store, and under the bound of the one who asks.
    let requests = setup.registry.requests().len();
    assert_eq!(fetch(&image, 4).await.unwrap(), b"\0asm");
    let error = fetch(&image, 3).await.unwrap_err();
    assert!(error.to_string().ends_with("its component is larger than 3 bytes"), "{error}");
    assert_eq!(setup.registry.requests().len(), requests);
    // Content in use stays in the store, by the digest of its tree.
    let tree = component_tree(&Digest::of(b"\0asm"), 4);
    let store = setup.images.store();
    assert_eq!(store.collect(&|digest| *digest == tree, 0).unwrap().removed, 0);
    // A component is not a bundle.
    let error = setup.images.fetch(&image, &setup.access).await.unwrap_err();
    assert!(error.to_string().ends_with("layer 0 has the media type \"application/wasm\", which is not a bundle's"));
    let wasm = |media_type: &str| Layer { media_type: media_type.to_owned(), bytes: b"\0asm".to_vec() };
    let legacy = wasm("application/vnd.wasm.content.layer.v1+wasm");
    for (layers, expected) in [
        (vec![legacy], Ok(())),
        (vec![], Err("this has none")),
        (vec![wasm("application/wasm"), wasm("application/wasm")], Err("this has 2 layers")),
        (vec![wasm("text/plain")], Err("this has one of the media type \"text/plain\"")),
    ] {
        setup.registry.push_image("other", "v1", Image::of_layers(layers)).unwrap();
        let image = setup.resolve("other:v1").await.unwrap();
        match (fetch(&image, 100).await, expected) {
            (Ok(bytes), Ok(())) => assert_eq!(bytes, b"\0asm"),
            (Err(error), Err(expected)) => assert!(error.to_string().ends_with(expected), "{error}"),
            (outcome, _) => panic!("{outcome:?}"),
        }
    }
    setup.registry.push_component("spoiled", "v1", b"other".to_vec()).unwrap();
    setup.registry.set_fault(Some((FaultOn::Blobs, Fault::WrongBytes)));
    let image = setup.resolve("spoiled:v1").await.unwrap();
    assert_eq!(fetch(&image, 100).await.unwrap_err().class(), FailureClass::Transient);
}
