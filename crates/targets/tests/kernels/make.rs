//! Kernels and packages as small as they can be, of our own making: a boot header with nothing behind it, modules with
//! nothing but what they say of themselves.

use flate2::Compression;
use flate2::write::GzEncoder;
use lzma_rust2::{XzOptions, XzWriter};
use object::write::Object;
use object::{Architecture, BinaryFormat, Endianness, SectionKind};
use ruzstd::encoding::{CompressionLevel, compress_to_vec};
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// The release that the made images and modules carry.
pub const RELEASE: &str = "7.3.4-made";
/// The build that they carry.
pub const BUILD: &str = "#7 SMP PREEMPT_DYNAMIC today";
/// A configuration.
pub const CONFIG: &str = "# Linux/x86 7.3.4 Kernel Configuration\nCONFIG_SMP=y\n";

/// An image for x86-64 whose header says that it is whole.
pub fn image() -> Vec<u8> {
    image_of(&format!("{RELEASE} (me@here) {BUILD}"))
}

/// An image with this version string.
pub fn image_of(version: &str) -> Vec<u8> {
    let setup_sectors = 3_usize;
    let system_bytes = 4096_usize;
    let mut bytes = vec![0x90; (setup_sectors + 1) * 512 + system_bytes];
    let mut put = |at: usize, what: &[u8]| bytes[at..at + what.len()].copy_from_slice(what);
    put(0, b"MZ");
    put(0x1f1, &[setup_sectors as u8]);
    put(0x1f4, &(system_bytes as u32 / 16).to_le_bytes());
    put(0x1fe, &[0x55, 0xaa, 0xeb, 0x6a]);
    put(0x202, b"HdrS");
    put(0x206, &0x020f_u16.to_le_bytes());
    put(0x20e, &(0x300_u16 - 0x200).to_le_bytes());
    put(0x236, &[0x7f, 0]);
    put(0x300, version.as_bytes());
    put(0x300 + version.len(), &[0]);
    bytes
}

/// A module that needs others, for the release of the images.
pub fn module(depends: &str) -> Vec<u8> {
    module_saying(&format!("depends={depends}\0name=x\0vermagic={RELEASE} SMP preempt mod_unload \0"))
}

/// A module with this section `.modinfo`.
pub fn module_saying(modinfo: &str) -> Vec<u8> {
    let mut file = Object::new(BinaryFormat::Elf, Architecture::X86_64, Endianness::Little);
    let section = file.add_section(Vec::new(), b".modinfo".to_vec(), SectionKind::ReadOnlyData);
    file.append_section_data(section, modinfo.as_bytes(), 1);
    file.write().unwrap()
}

/// How something is packed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Packing {
    None,
    Gzip,
    Xz,
    Zstd,
}

/// All of them.
pub const PACKINGS: [Packing; 4] = [Packing::None, Packing::Gzip, Packing::Xz, Packing::Zstd];

impl Packing {
    /// The end of names, without the dot.
    pub fn ending(self) -> &'static str {
        match self {
            Packing::None => "",
            Packing::Gzip => ".gz",
            Packing::Xz => ".xz",
            Packing::Zstd => ".zst",
        }
    }

    /// `bytes`, packed.
    pub fn pack(self, bytes: &[u8]) -> Vec<u8> {
        match self {
            Packing::None => bytes.to_vec(),
            Packing::Gzip => {
                let mut packer = GzEncoder::new(Vec::new(), Compression::fast());
                packer.write_all(bytes).unwrap();
                packer.finish().unwrap()
            }
            Packing::Xz => {
                let mut packer = XzWriter::new(Vec::new(), XzOptions::with_preset(0)).unwrap();
                packer.write_all(bytes).unwrap();
                packer.finish().unwrap()
            }
            Packing::Zstd => compress_to_vec(bytes, CompressionLevel::Fastest),
        }
    }
}

/// The files of a package: path and content.
pub type Files<'a> = &'a [(&'a str, &'a [u8])];

/// A .deb with these files.
pub fn deb(files: Files, packing: Packing) -> Vec<u8> {
    let mut deb = b"!<arch>\n".to_vec();
    add_member(&mut deb, "debian-binary", b"2.0\n");
    add_member(&mut deb, "control.tar", &tar(&[("./control", b"Package: made\nArchitecture: amd64\n")]));
    add_member(&mut deb, &format!("data.tar{}", packing.ending()), &packing.pack(&tar(files)));
    deb
}

/// A .deb that claims that its first file, an image, has this size.
pub fn deb_claiming(bytes: u64) -> Vec<u8> {
    let mut header = tar::Header::new_gnu();
    header.set_path("boot/vmlinuz-7.3.4-made").unwrap();
    header.set_size(bytes);
    header.set_cksum();
    let mut deb = b"!<arch>\n".to_vec();
    add_member(&mut deb, "data.tar", header.as_bytes());
    deb
}

fn add_member(archive: &mut Vec<u8>, name: &str, bytes: &[u8]) {
    let header = format!("{name:<16}{:<12}{:<6}{:<6}{:<8}{:<10}`\n", 0, 0, 0, 100_644, bytes.len());
    archive.extend(header.as_bytes());
    archive.extend(bytes);
    if bytes.len() % 2 == 1 {
        archive.push(b'\n');
    }
}

fn tar(files: Files) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (path, bytes) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        builder.append_data(&mut header, path, *bytes).unwrap();
    }
    builder.into_inner().unwrap()
}

/// An .rpm with these files, which says its size as small packages do.
pub fn rpm(files: Files, packing: Packing) -> Vec<u8> {
    rpm_of_size(files, packing, |size| (1000, (size as u32).to_be_bytes().to_vec()))
}

/// An .rpm that says its size with this tag and value.
pub fn rpm_of_size(files: Files, packing: Packing, tag_of_size: impl Fn(u64) -> (u32, Vec<u8>)) -> Vec<u8> {
    let mut archive = Vec::new();
    for (path, bytes) in files {
        let entry = cpio::NewcBuilder::new(&format!("./{path}")).mode(0o100_644);
        let mut writer = entry.write(archive, bytes.len() as u32);
        writer.write_all(bytes).unwrap();
        archive = writer.finish().unwrap();
    }
    let payload = packing.pack(&cpio::newc::trailer(archive).unwrap());
    let header = rpm_header(&[(1000, b"a name\0")]);
    let (tag, size) = tag_of_size((header.len() + payload.len()) as u64);
    let mut rpm = vec![0xed, 0xab, 0xee, 0xdb];
    rpm.resize(96, 0);
    rpm.extend(rpm_header(&[(1007, &[0; 4]), (tag, &size), (62, b"end")]));
    rpm.resize(rpm.len().next_multiple_of(8), 0);
    rpm.extend(header);
    rpm.extend(payload);
    rpm
}

/// A header of tags and their values.
fn rpm_header(tags: &[(u32, &[u8])]) -> Vec<u8> {
    let (mut index, mut store) = (Vec::<u8>::new(), Vec::<u8>::new());
    for (tag, value) in tags {
        // The type does not matter to us.
        index.extend([*tag, 4, store.len() as u32, 1].iter().flat_map(|number| number.to_be_bytes()));
        store.extend(*value);
    }
    let mut header = vec![0x8e, 0xad, 0xe8, 1, 0, 0, 0, 0];
    header.extend((tags.len() as u32).to_be_bytes());
    header.extend((store.len() as u32).to_be_bytes());
    header.extend(index);
    header.extend(store);
    header
}

/// Writes a file below `top` and gives its path.
pub fn plant(top: &Path, inside: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
    let path = top.join(inside);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, bytes).unwrap();
    path
}
