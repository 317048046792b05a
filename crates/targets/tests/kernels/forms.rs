//! The forms of `kernel=`.

use crate::make::{BUILD, CONFIG, PACKINGS, Packing, RELEASE, deb, image, image_of, module, plant, rpm};
use crate::{open, refused};
use machine::Root;
use std::path::{Path, PathBuf};
use targets::kernel::{Kernel, KernelError, open_on};
use tempfile::TempDir;

fn assert_made(kernel: &Kernel) {
    assert_eq!(kernel.image, image());
    assert_eq!(kernel.release.as_deref(), Some(RELEASE));
    assert_eq!(kernel.build.as_deref(), Some(BUILD));
    assert_eq!(kernel.config.as_deref(), Some(CONFIG));
}

#[test]
fn an_image_by_any_name_finds_what_lies_beside_it() {
    for (name, config) in [
        ("bzImage", "config"),
        ("bzImage-mine", "config-mine"),
        ("vmlinuz-mine", "config-7.3.4-made"),
        ("renamed", "config-7.3.4-made"),
    ] {
        let top = TempDir::new().unwrap();
        plant(top.path(), config, CONFIG);
        plant(top.path(), "config-other", "CONFIG_OTHER=y\n");
        let kernel = open(&plant(top.path(), name, image())).unwrap();
        assert_made(&kernel);
        assert!(kernel.given_as.ends_with(name), "{kernel:?}");
    }
}

#[test]
fn the_configuration_with_the_name_of_the_image_comes_first() {
    let top = TempDir::new().unwrap();
    let image = plant(top.path(), "bzImage-mine", image());
    for (name, config) in [("config", "plain"), ("config-7.3.4-made", "release"), ("config-mine", "name")] {
        let text = format!("CONFIG_LOCALVERSION=\"{config}\"\n");
        plant(top.path(), name, &text);
        assert_eq!(open(&image).unwrap().config, Some(text));
    }
}

#[test]
fn a_configuration_is_found_where_distributions_keep_it() {
    for place in [
        "boot/config-7.3.4-made",
        "usr/lib/modules/7.3.4-made/config",
        "lib/modules/7.3.4-made/build/.config",
    ] {
        let machine = TempDir::new().unwrap();
        plant(machine.path(), place, CONFIG);
        let top = TempDir::new().unwrap();
        let image = plant(top.path(), "bzImage", image());
        assert_made(&open_on(&Root::at(machine.path()), image.to_str().unwrap()).unwrap());
    }
}

#[test]
fn what_is_no_configuration_is_not_taken_for_one() {
    let top = TempDir::new().unwrap();
    plant(top.path(), "config", "[core]\n\tbare = false\n");
    let kernel = open(&plant(top.path(), "bzImage", image())).unwrap();
    assert_eq!(kernel.config, None);
}

#[test]
fn a_header_without_a_version_is_a_kernel_all_the_same() {
    let top = TempDir::new().unwrap();
    let mut image = image();
    image[0x20e..0x210].fill(0);
    let kernel = open(&plant(top.path(), "bzImage", image)).unwrap();
    assert_eq!((kernel.release, kernel.build), (None, None));
}

#[test]
fn a_build_tree_is_known_by_its_top_and_by_its_image() {
    let top = TempDir::new().unwrap();
    plant(top.path(), ".config", CONFIG);
    plant(top.path(), "Kconfig", "");
    // The first form is that of newer kernels, the second that of older ones.
    plant(top.path(), "modules.order", "kernel/locking/locktorture.o\nkernel/fs/old.ko\n");
    plant(top.path(), "fs/old.ko", module(""));
    plant(top.path(), "kernel/locking/locktorture.ko", module(""));
    let image = plant(top.path(), "arch/x86/boot/bzImage", image());
    let link = top.path().join("arch/x86_64/boot/bzImage");
    std::fs::create_dir_all(link.parent().unwrap()).unwrap();
    std::os::unix::fs::symlink("../../x86/boot/bzImage", &link).unwrap();
    for given in [top.path(), &image, &link] {
        let kernel = open(given).unwrap();
        assert_made(&kernel);
        assert_eq!(kernel.modules.closure(&["locktorture", "old"]).unwrap().len(), 2);
    }
}

#[test]
fn a_tree_that_was_never_built_says_so() {
    for file in ["Kconfig", ".config"] {
        let top = TempDir::new().unwrap();
        plant(top.path(), file, CONFIG);
        let said = refused(top.path());
        assert!(said.contains("was never built") && said.contains("make bzImage modules"), "{said}");
    }
}

#[test]
fn a_directory_may_hold_one_kernel() {
    let top = TempDir::new().unwrap();
    plant(top.path(), "README", "about");
    let said = refused(top.path());
    assert!(said.contains("there is no kernel in"), "{said}");
    plant(top.path(), "boot/vmlinuz-old/note", "a directory");
    plant(top.path(), "boot/vmlinuz-one", image());
    plant(top.path(), "boot/config-one", CONFIG);
    plant(top.path(), "lib/modules/7.3.4-made/kernel/a.ko", module(""));
    let kernel = open(top.path()).unwrap();
    assert_made(&kernel);
    assert_eq!(kernel.modules.closure(&["a"]).unwrap().len(), 1);
    plant(top.path(), "boot/vmlinuz-two", image());
    let said = refused(top.path());
    assert!(
        said.contains("2 kernels") && said.contains("vmlinuz-one") && said.contains("vmlinuz-two"),
        "{said}"
    );
}

#[test]
fn the_running_kernel_is_found_or_missed_by_its_release() {
    let machine = TempDir::new().unwrap();
    let root = Root::at(machine.path());
    plant(machine.path(), "proc/sys/kernel/osrelease", "7.3.4-made\n");
    let said = open_on(&root, "installed").unwrap_err().to_string();
    assert!(said.contains("7.3.4-made") && said.contains("boot/vmlinuz-7.3.4-made"), "{said}");
    plant(machine.path(), "boot/vmlinuz-7.3.4-made", image());
    plant(machine.path(), "boot/config-7.3.4-made", CONFIG);
    plant(machine.path(), "lib/modules/7.3.4-made/kernel/a.ko.xz", Packing::Xz.pack(&module("")));
    let kernel = open_on(&root, "installed").unwrap();
    assert_made(&kernel);
    assert_eq!(kernel.given_as, "installed");
    assert_eq!(kernel.modules.closure(&["a"]).unwrap()[0].bytes, module(""));
}

#[test]
fn packages_are_read_in_every_packing_and_by_any_name() {
    let (image, module) = (image(), module(""));
    let debian: [(&str, &[u8]); 4] = [
        ("./boot/System.map-7.3.4-made", b"symbols"),
        ("./boot/config-7.3.4-made", CONFIG.as_bytes()),
        ("./boot/vmlinuz-7.3.4-made", &image),
        ("./lib/modules/7.3.4-made/kernel/a.ko", &module),
    ];
    let redhat: [(&str, &[u8]); 4] = [
        ("lib/modules/7.3.4-made/.vmlinuz.hmac", b"sum"),
        ("lib/modules/7.3.4-made/config", CONFIG.as_bytes()),
        ("lib/modules/7.3.4-made/kernel/a.ko", &module),
        ("lib/modules/7.3.4-made/vmlinuz", &image),
    ];
    for packing in PACKINGS {
        for (name, bytes) in [
            ("a+b.deb", deb(&debian, packing)),
            ("a.rpm", rpm(&redhat, packing)),
            ("download", deb(&debian, packing)),
        ] {
            let top = TempDir::new().unwrap();
            let kernel = open(&plant(top.path(), name, bytes))
                .unwrap_or_else(|error| panic!("{packing:?} {name}: {error}"));
            assert_made(&kernel);
            assert_eq!(kernel.modules.closure(&["a"]).unwrap()[0].bytes, module, "{packing:?} {name}");
        }
    }
}

#[test]
fn two_names_of_the_image_in_a_package_are_one_kernel() {
    let image = image();
    let files: [(&str, &[u8]); 2] =
        [("./boot/vmlinuz-7.3.4-made", &image), ("./lib/modules/7.3.4-made/vmlinuz", &image)];
    let top = TempDir::new().unwrap();
    assert_eq!(open(&plant(top.path(), "made.deb", deb(&files, Packing::Gzip))).unwrap().image, image);
}

/// A file with two names has its content under the last of them.
#[test]
fn a_second_name_of_the_image_in_an_rpm_is_passed_over() {
    let image = image();
    let files: [(&str, &[u8]); 2] =
        [("boot/vmlinuz-7.3.4-made", b""), ("lib/modules/7.3.4-made/vmlinuz", &image)];
    let top = TempDir::new().unwrap();
    assert_eq!(open(&plant(top.path(), "made.rpm", rpm(&files, Packing::Zstd))).unwrap().image, image);
}

/// Since Linux 7 Debian's kernels come in several packages.
#[test]
fn split_packages_are_joined_in_any_order() {
    let top = TempDir::new().unwrap();
    let image = image();
    let binary = deb(&[("./boot/vmlinuz-7.3.4-made", &image)], Packing::Xz);
    let base = deb(&[("./usr/lib/modules/7.3.4-made/config", CONFIG.as_bytes())], Packing::Zstd);
    let binary = plant(top.path(), "linux-binary_7.3.4+deb14.deb", binary);
    let base = plant(top.path(), "linux-base_7.3.4+deb14.deb", base);
    let joined = |parts: [&Path; 2]| PathBuf::from(parts.map(|part| part.to_str().unwrap()).join("+"));
    assert_made(&open(&joined([&binary, &base])).unwrap());
    assert_made(&open(&joined([&base, &binary])).unwrap());
    assert_eq!(open(&binary).unwrap().config, None);
    let other = deb(&[("./boot/config-7.3.4-made", b"CONFIG_OTHER=y\n")], Packing::None);
    let other = plant(top.path(), "other.deb", other);
    assert_made(
        &open(&PathBuf::from([&binary, &base, &other].map(|part| part.to_str().unwrap()).join("+"))).unwrap(),
    );
    // A configuration of another kernel says nothing of this one.
    let strange = deb(&[("./boot/config-7.3.5-made", b"CONFIG_OTHER=y\n")], Packing::None);
    let strange = plant(top.path(), "strange.deb", strange);
    assert_eq!(open(&joined([&strange, &binary])).unwrap().config, None);
    assert_made(
        &open(&PathBuf::from([&strange, &binary, &base].map(|part| part.to_str().unwrap()).join("+")))
            .unwrap(),
    );
    let said = refused(&base);
    assert!(said.contains("there is no kernel in") && said.contains("linux-binary"), "{said}");
    let said = refused(&joined([&binary, &binary]));
    assert!(said.contains("2 kernels"), "{said}");
    let said = refused(&joined([&binary, &top.path().join("absent.deb")]));
    assert!(said.contains("absent.deb") && said.contains("No such file"), "{said}");
}

#[test]
fn what_is_no_kernel_is_named_for_what_it_is() {
    let image = image();
    let cases: &[(&[u8], &str)] = &[
        (b"", "an empty file"),
        (b"hello, this is a note\n", "text"),
        (b"\x7fELF\x02\x01\x01", "an ELF file"),
        (b"070701000000", "an archive for an initramfs"),
        (b"\x1f\x8b\x08\x00", "packed with gzip"),
        (b"QFI\xfb\0\0\0\x03", "a disk image of QEMU"),
        (&[0; 4096], "without a Linux boot header"),
        (&image[..0x200], "program for EFI"),
    ];
    let top = TempDir::new().unwrap();
    for (bytes, what) in cases {
        let path = plant(top.path(), "thing", bytes);
        let said = refused(&path);
        assert!(
            said.contains(what) && said.contains("thing") && said.contains("kernel= takes"),
            "{what}: {said}"
        );
    }
}

#[test]
fn what_is_not_there_or_cannot_be_read_is_named() {
    let top = TempDir::new().unwrap();
    let said = refused(&top.path().join("bzImage"));
    assert!(said.contains("bzImage") && said.contains("no such file"), "{said}");
    let said = refused(Path::new("~/bzImage"));
    assert!(said.contains("$HOME"), "{said}");
    assert!(matches!(open(Path::new("")), Err(KernelError::Absent { .. })));
    let said = refused(Path::new("/dev/null"));
    assert!(said.contains("no regular file"), "{said}");
    let said = refused(&plant(top.path(), "file", "x").join("bzImage"));
    assert!(said.contains("cannot read"), "{said}");
}

#[test]
fn a_disk_image_is_not_read_to_find_out_what_it_is() {
    let top = TempDir::new().unwrap();
    let path = top.path().join("disk.img");
    std::fs::File::create(&path).unwrap().set_len(1 << 40).unwrap();
    let said = refused(&path);
    assert!(said.contains("a file of more than 512 MiB"), "{said}");
}

#[test]
fn kernels_for_other_processors_are_refused() {
    let mut arm64 = vec![0; 4096];
    arm64[0x38..0x3c].copy_from_slice(b"ARM\x64");
    let mut riscv = vec![0; 4096];
    riscv[0x30..0x35].copy_from_slice(b"RISCV");
    let mut i386 = image();
    i386[0x236] = 0;
    let top = TempDir::new().unwrap();
    for (bytes, processors) in [(&arm64, "arm64"), (&riscv, "riscv"), (&i386, "32-bit x86")] {
        let said = refused(&plant(top.path(), "Image", bytes));
        assert!(said.contains(&format!("is a kernel for {processors}")), "{said}");
        let package = deb(&[("./boot/vmlinuz-7.3.4-made", bytes)], Packing::None);
        let said = refused(&plant(top.path(), "made.deb", package));
        assert!(said.contains(&format!("is a kernel for {processors}")), "{said}");
    }
    let tree = TempDir::new().unwrap();
    plant(tree.path(), "arch/arm64/boot/Image", &arm64);
    let said = refused(tree.path());
    assert!(said.contains("is a kernel for arm64"), "{said}");
}

#[test]
fn packings_that_are_not_read_are_named() {
    let top = TempDir::new().unwrap();
    let mut package = deb(&[("./boot/vmlinuz-7.3.4-made", &image())], Packing::Xz);
    let at = package.windows(6).position(|bytes| bytes == b"\xfd7zXZ\0").unwrap();
    package[at..at + 4].copy_from_slice(b"BZh9");
    let said = refused(&plant(top.path(), "made.deb", package));
    assert!(said.contains("bzip2"), "{said}");
}

#[test]
fn a_version_that_is_no_text_is_no_version() {
    let top = TempDir::new().unwrap();
    let mut image = image_of("7.3.4-made");
    image[0x300] = 0xff;
    let said = refused(&plant(top.path(), "bzImage", image));
    assert!(said.contains("damaged"), "{said}");
}
