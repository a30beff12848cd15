//! What the reader of joined parcels promises about any bytes, used by the fuzz target and by the tests of
//! `crates/core/schedule`: no panic, errors that name a place, and what is accepted is written again as it was.

use raddle_schedule::parcel::{HEAD_BYTES, ParcelView, ParcelWriter};

/// Bytes as they come from another process.
pub(crate) fn parcel(bytes: &[u8]) {
    match ParcelView::parse(bytes) {
        Err(error) => {
            assert!(error.offset <= bytes.len(), "{error}");
            let text = error.to_string();
            assert!(text.contains(error.field) && text.len() < 200, "{text}");
        }
        Ok(view) => {
            assert!(bytes.len() > HEAD_BYTES);
            let mut copy = vec![0; bytes.len()];
            let mut writer = ParcelWriter::new(&mut copy).expect("as long as what was read");
            let mut parts = 0;
            for (head, part) in view.parts() {
                writer.push(&head, part).expect("it was there before");
                parts += 1;
            }
            assert_eq!(parts, view.count());
            assert_eq!(writer.finish(), bytes.len());
            assert_eq!(copy, bytes);
        }
    }
}
