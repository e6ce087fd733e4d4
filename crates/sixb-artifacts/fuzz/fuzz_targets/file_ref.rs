//! Whatever is read as a reference is written back as the same one, and its blob id is its digest's.

#![no_main]

use libfuzzer_sys::fuzz_target;
use sixb_artifacts::{Digest, FileRef};

fuzz_target!(|bytes: &[u8]| {
    let Ok(file) = serde_json::from_slice::<FileRef>(bytes) else { return };
    assert_eq!(Digest::from_blob_id(&file.blob_id()), Ok(file.digest()));
    let json = serde_json::to_vec(&file).expect("JSON");
    assert_eq!(serde_json::from_slice::<FileRef>(&json).expect("reads"), file);
});
