use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Where the files of a machine are: `/`, or the top of a recorded or synthetic tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Root {
    top: PathBuf,
}

/// A file of the machine that could not be read or understood.
#[derive(Debug, Error)]
pub enum ReadError {
    /// It could not be read.
    #[error("cannot read {}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// It says something else than was expected.
    #[error("{} should hold {wanted}, but holds `{found}`", path.display())]
    Form {
        /// The file.
        path: PathBuf,
        /// What was expected.
        wanted: &'static str,
        /// What stood there, shortened.
        found: String,
    },
}

impl ReadError {
    /// Whether the file is not there at all.
    pub fn is_absent(&self) -> bool {
        matches!(self, ReadError::Io { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }
}

impl Root {
    /// The machine that this runs on.
    pub fn real() -> Root {
        Root { top: PathBuf::from("/") }
    }

    /// The machine whose files are below `top`.
    pub fn at(top: impl Into<PathBuf>) -> Root {
        Root { top: top.into() }
    }

    /// Whether this is the machine that runs this.
    pub fn is_real(&self) -> bool {
        self.top == Path::new("/")
    }

    /// Where `inside`, a path on the machine with or without its leading slash, is found.
    pub fn path(&self, inside: impl AsRef<Path>) -> PathBuf {
        let inside = inside.as_ref();
        self.top.join(inside.strip_prefix("/").unwrap_or(inside))
    }

    /// The text of a file without white space at its end. Bytes that are no UTF-8 are replaced.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn text(&self, inside: impl AsRef<Path>) -> Result<String, ReadError> {
        let path = self.path(inside);
        match std::fs::read(&path) {
            Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).trim_end().to_string()),
            Err(source) => Err(ReadError::Io { path, source }),
        }
    }

    /// The whole number that a file holds.
    ///
    /// # Errors
    /// When it cannot be read or holds something else.
    pub fn number(&self, inside: impl AsRef<Path>) -> Result<u64, ReadError> {
        let inside = inside.as_ref();
        let text = self.text(inside)?;
        text.trim().parse().map_err(|_| self.form(inside, "a whole number", &text))
    }

    /// The error for a file that holds something else than `wanted`.
    pub(crate) fn form(&self, inside: impl AsRef<Path>, wanted: &'static str, found: &str) -> ReadError {
        ReadError::Form { path: self.path(inside), wanted, found: found.chars().take(60).collect() }
    }
}
