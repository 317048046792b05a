//! Torn and damaged files: an error, and never a panic or a kernel that is not the one in the file.

use crate::make::{CONFIG, PACKINGS, Packing, deb, deb_claiming, image, module, plant, rpm, rpm_of_size};
use crate::{open, refused};
use proptest::prelude::*;
use targets::kernel::KernelError;
use tempfile::TempDir;

/// A package with all that is read, in both formats and every packing.
fn packages() -> Vec<(String, Vec<u8>)> {
    let (image, module) = (image(), module(""));
    let files: [(&str, &[u8]); 3] = [
        ("boot/vmlinuz-7.3.4-made", &image),
        ("boot/config-7.3.4-made", CONFIG.as_bytes()),
        ("lib/modules/7.3.4-made/kernel/a.ko", &module),
    ];
    let made = PACKINGS.into_iter().flat_map(|packing| {
        [
            (format!("{packing:?} deb"), deb(&files, packing)),
            (format!("{packing:?} rpm"), rpm(&files, packing)),
        ]
    });
    made.collect()
}

#[test]
fn an_image_that_was_cut_says_what_it_lacks() {
    let top = TempDir::new().unwrap();
    let whole = image();
    for bytes in [0x210, 0x300, 2048, whole.len() - 1] {
        let path = plant(top.path(), "bzImage", &whole[..bytes]);
        let said = refused(&path);
        let expected = format!("truncated: {bytes} of {} bytes", whole.len());
        assert!(said.contains(&expected), "{said}");
    }
}

/// Old kernels leave the number of sectors empty, and mean four.
#[test]
fn an_image_without_a_number_of_sectors_has_four() {
    let top = TempDir::new().unwrap();
    let mut old = image();
    old[0x1f1] = 0;
    let said = refused(&plant(top.path(), "bzImage", &old));
    assert!(said.contains(&format!("{} of {} bytes", old.len(), old.len() + 512)), "{said}");
    old.extend([0; 512]);
    assert!(open(&plant(top.path(), "bzImage", &old)).is_ok());
}

#[test]
fn a_package_that_was_cut_anywhere_is_refused() {
    let top = TempDir::new().unwrap();
    for (name, whole) in packages() {
        let path = plant(top.path(), "package", &whole);
        assert!(open(&path).is_ok(), "{name}");
        // The very last byte of a .deb may be padding.
        let last = whole.len() - 2;
        for cut in (0..last).step_by(97).chain([last]) {
            let path = plant(top.path(), "package", &whole[..cut]);
            assert!(open(&path).is_err(), "{name} of {} bytes, cut to {cut}", whole.len());
        }
    }
}

#[test]
fn a_download_that_broke_off_is_called_truncated() {
    let top = TempDir::new().unwrap();
    let image = image();
    let large = rpm_of_size(&[("boot/vmlinuz-7.3.4-made", &image)], Packing::None, |size| {
        (270, size.to_be_bytes().to_vec())
    });
    for (name, whole) in packages().into_iter().chain([("rpm with a long size".into(), large)]) {
        assert!(open(&plant(top.path(), "package", &whole)).is_ok(), "{name}");
        let path = plant(top.path(), "package", &whole[..whole.len() - 100]);
        let error = open(&path).unwrap_err();
        assert!(matches!(error, KernelError::Truncated { .. }), "{name}: {error}");
    }
}

#[test]
fn a_checksum_inside_a_package_is_believed() {
    let top = TempDir::new().unwrap();
    let (mut packed, plain) = (Packing::Zstd.pack(&module("")), module(""));
    plant(top.path(), "modules/a.ko.zst", &packed);
    let kernel = open(&plant(top.path(), "bzImage", image())).unwrap();
    assert_eq!(kernel.modules.closure(&["a"]).unwrap()[0].bytes, plain);
    // The last four bytes of a frame.
    *packed.last_mut().unwrap() ^= 1;
    plant(top.path(), "modules/a.ko.zst", &packed);
    let said = kernel.modules.closure(&["a"]).unwrap_err().to_string();
    assert!(said.contains("checksum"), "{said}");
}

#[test]
fn a_file_larger_than_its_package_is_refused() {
    let top = TempDir::new().unwrap();
    for bytes in [1, 512, 1 << 40, u64::MAX - 600, u64::MAX] {
        let said = refused(&plant(top.path(), "made.deb", deb_claiming(bytes)));
        assert!(said.contains("made.deb"), "{bytes}: {said}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn damaged_packages_do_not_panic(
        which in 0..8_usize,
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
    ) {
        let top = TempDir::new().unwrap();
        let (_, mut bytes) = packages().swap_remove(which);
        for (at, value) in flips {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        if let Ok(kernel) = open(&plant(top.path(), "package", &bytes)) {
            let _ = kernel.modules.closure(&["a"]);
        }
    }

    #[test]
    fn damaged_images_do_not_panic(
        flips in prop::collection::vec((0..0x400_usize, any::<u8>()), 1..8),
        bytes in 0..7000_usize,
    ) {
        let top = TempDir::new().unwrap();
        let mut image = image();
        for (at, value) in flips {
            image[at] = value;
        }
        image.truncate(bytes);
        let _ = open(&plant(top.path(), "bzImage", &image));
    }

    #[test]
    fn anything_at_all_does_not_panic(
        start in prop::sample::select(vec![&b""[..], b"!<arch>\n", b"\xed\xab\xee\xdb"]),
        bytes in prop::collection::vec(any::<u8>(), 0..600),
    ) {
        let top = TempDir::new().unwrap();
        let bytes = [start, &bytes].concat();
        prop_assert!(open(&plant(top.path(), "thing", bytes)).is_err());
    }
}
