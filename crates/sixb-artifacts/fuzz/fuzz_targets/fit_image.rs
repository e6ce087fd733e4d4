//! Any bytes end in an image within limits or in a reason. `Internal` would be a panic of a decoder.

#![no_main]

use libfuzzer_sys::fuzz_target;
use sixb_artifacts::images::{AcceptedFormats, ImageLimits, LeftOut, fit_image_blocking};

fuzz_target!(|bytes: &[u8]| {
    let limits = ImageLimits::default().size(64, 64).decode(4_000_000, 64 << 20);
    let accepted = AcceptedFormats::default();
    match fit_image_blocking(bytes.to_vec().into(), &limits, &accepted) {
        Ok(fitted) => {
            assert!(fitted.width <= 64 && fitted.height <= 64);
            assert!(accepted.contains(&fitted.media_type));
        }
        Err(left_out) => assert_ne!(left_out, LeftOut::Internal),
    }
});
