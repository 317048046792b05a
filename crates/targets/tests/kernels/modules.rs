//! Modules and what they depend on.

use crate::make::{PACKINGS, Packing, deb, image, module, module_saying, plant};
use crate::open;
use targets::kernel::{Kernel, Module};
use tempfile::TempDir;

/// A kernel with these modules: name and what it depends on.
fn with_modules(modules: &[(&str, &str)], packing: Packing) -> (TempDir, Kernel) {
    let top = TempDir::new().unwrap();
    for (name, depends) in modules {
        let file = format!("modules/kernel/{name}.ko{}", packing.ending());
        plant(top.path(), &file, packing.pack(&module(depends)));
    }
    let kernel = open(&plant(top.path(), "bzImage", image())).unwrap();
    (top, kernel)
}

fn names(modules: &[Module]) -> Vec<&str> {
    modules.iter().map(|module| module.name.as_str()).collect()
}

#[test]
fn each_module_comes_behind_what_it_depends_on() {
    let modules =
        [("top", "left,right"), ("left", "base-of-all"), ("right", "base_of_all,left"), ("base-of-all", "")];
    for packing in PACKINGS {
        let (_top, kernel) = with_modules(&modules, packing);
        let found = kernel.modules.closure(&["top"]).unwrap();
        let names = names(&found);
        let place = |name| names.iter().position(|found| *found == name).unwrap();
        assert_eq!(names.len(), 4, "{packing:?}: {names:?}");
        for (before, behind) in
            [("base_of_all", "left"), ("left", "right"), ("left", "top"), ("right", "top")]
        {
            assert!(place(before) < place(behind), "{packing:?}: {names:?}");
        }
        assert_eq!(found[place("left")].bytes, module("base-of-all"), "{packing:?}");
    }
}

#[test]
fn an_image_among_its_modules_finds_them() {
    let top = TempDir::new().unwrap();
    let folder = top.path().join("lib/modules/7.3.4-made");
    plant(&folder, "modules.order", "kernel/a.ko\n");
    plant(&folder, "kernel/a.ko.zst", Packing::Zstd.pack(&module("")));
    // As installed: a link to the tree of the build, whose modules are none of these.
    plant(top.path(), "usr/src/linux/b.ko", module(""));
    std::os::unix::fs::symlink(top.path().join("usr/src/linux"), folder.join("build")).unwrap();
    let kernel = open(&plant(&folder, "vmlinuz", image())).unwrap();
    assert_eq!(names(&kernel.modules.closure(&["a"]).unwrap()), ["a"]);
    assert!(kernel.modules.closure(&["b"]).is_err());
}

#[test]
fn what_is_asked_for_twice_comes_once() {
    let (_top, kernel) = with_modules(&[("a", "b"), ("b", "")], Packing::None);
    assert_eq!(names(&kernel.modules.closure(&["a", "b", "a"]).unwrap()), ["b", "a"]);
    assert!(kernel.modules.closure(&[]).unwrap().is_empty());
}

#[test]
fn a_circle_of_dependencies_ends() {
    let (_top, kernel) = with_modules(&[("a", "b"), ("b", "c"), ("c", "a")], Packing::None);
    assert_eq!(kernel.modules.closure(&["a"]).unwrap().len(), 3);
}

#[test]
fn a_long_chain_of_dependencies_is_followed() {
    let links: Vec<(String, String)> =
        (0..3000).map(|at| (format!("m{at}"), format!("m{}", at + 1))).collect();
    let mut links: Vec<(&str, &str)> =
        links.iter().map(|(name, depends)| (name.as_str(), depends.as_str())).collect();
    links.push(("m3000", ""));
    let (_top, kernel) = with_modules(&links, Packing::None);
    let found = kernel.modules.closure(&["m0"]).unwrap();
    assert_eq!((found.len(), found[0].name.as_str()), (3001, "m3000"));
}

#[test]
fn built_in_modules_need_no_file() {
    let (top, kernel) = with_modules(&[("a", "virtio")], Packing::None);
    let said = kernel.modules.closure(&["a"]).unwrap_err().to_string();
    assert!(said.contains("no module virtio, which its module a needs"), "{said}");
    plant(
        top.path(),
        "modules/modules.builtin",
        "kernel/drivers/virtio/virtio.ko\nkernel/virtio-console.ko\n",
    );
    assert_eq!(names(&kernel.modules.closure(&["a", "virtio_console"]).unwrap()), ["a"]);
}

#[test]
fn wishes_are_met_where_the_kernel_can() {
    let top = TempDir::new().unwrap();
    let wishing = module_saying("depends=\0softdep=pre: there absent post: later\0");
    plant(top.path(), "modules/a.ko", wishing);
    plant(top.path(), "modules/there.ko", module(""));
    plant(top.path(), "modules/later.ko", module(""));
    let kernel = open(&plant(top.path(), "bzImage", image())).unwrap();
    assert_eq!(names(&kernel.modules.closure(&["a"]).unwrap()), ["there", "a"]);
}

#[test]
fn a_module_that_is_not_there_is_named_with_the_places() {
    let (_top, kernel) = with_modules(&[("a", "")], Packing::None);
    let said = kernel.modules.closure(&["locktorture"]).unwrap_err().to_string();
    assert!(said.contains("no module locktorture") && said.contains("modules"), "{said}");
    let top = TempDir::new().unwrap();
    let kernel = open(&plant(top.path(), "bzImage", image())).unwrap();
    let said = kernel.modules.closure(&["locktorture"]).unwrap_err().to_string();
    assert!(said.contains("no modules here") && said.contains("lib/modules/7.3.4-made"), "{said}");
    let package = deb(&[("./boot/vmlinuz-7.3.4-made", &image())], Packing::Xz);
    let kernel = open(&plant(top.path(), "made.deb", package)).unwrap();
    let said = kernel.modules.closure(&["locktorture"]).unwrap_err().to_string();
    assert!(said.contains("join that by +"), "{said}");
}

#[test]
fn a_module_of_another_build_is_refused() {
    let top = TempDir::new().unwrap();
    plant(top.path(), "modules/a.ko", module_saying("depends=\0vermagic=6.12.0 SMP\0"));
    plant(top.path(), "modules/b.ko", b"no ELF");
    plant(top.path(), "modules/c.ko", &module_saying("")[..200]);
    let kernel = open(&plant(top.path(), "bzImage", image())).unwrap();
    let said = |name| kernel.modules.closure(&[name]).unwrap_err().to_string();
    assert!(said("a").contains("is for the kernel 6.12.0, not for 7.3.4-made"), "{}", said("a"));
    assert!(said("b").contains("b.ko is damaged"), "{}", said("b"));
    assert!(said("c").contains("c.ko is damaged"), "{}", said("c"));
}
