//! The operations of a load, and the messages that each of them exchanges.

/// What a client asks of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Removes a tree of files. Nothing is sent for it.
    Deltree,
    /// Makes a directory.
    Mkdir,
    /// Removes a directory.
    Rmdir,
    /// Removes a file.
    Unlink,
    /// Opens or creates a file.
    NtCreateX,
    /// Closes a file.
    Close,
    /// Renames a file.
    Rename,
    /// Has a file written to the disk.
    Flush,
    /// Asks about a path.
    QueryPath,
    /// Asks about an open file.
    QueryFile,
    /// Asks about the file system.
    QueryFs,
    /// Changes what is known of an open file.
    SetFile,
    /// Locks a part of a file.
    LockX,
    /// Unlocks a part of a file.
    UnlockX,
    /// Lists a directory.
    FindFirst,
    /// Writes to a file.
    WriteX,
    /// Reads from a file.
    ReadX,
}

impl Kind {
    /// How many there are.
    pub const COUNT: usize = Kind::ALL.len();

    /// All.
    pub const ALL: [Kind; 17] = [
        Kind::Deltree,
        Kind::Mkdir,
        Kind::Rmdir,
        Kind::Unlink,
        Kind::NtCreateX,
        Kind::Close,
        Kind::Rename,
        Kind::Flush,
        Kind::QueryPath,
        Kind::QueryFile,
        Kind::QueryFs,
        Kind::SetFile,
        Kind::LockX,
        Kind::UnlockX,
        Kind::FindFirst,
        Kind::WriteX,
        Kind::ReadX,
    ];

    /// The word for it in a loadfile.
    pub fn word(self) -> &'static str {
        match self {
            Kind::Deltree => "Deltree",
            Kind::Mkdir => "Mkdir",
            Kind::Rmdir => "Rmdir",
            Kind::Unlink => "Unlink",
            Kind::NtCreateX => "NTCreateX",
            Kind::Close => "Close",
            Kind::Rename => "Rename",
            Kind::Flush => "Flush",
            Kind::QueryPath => "QUERY_PATH_INFORMATION",
            Kind::QueryFile => "QUERY_FILE_INFORMATION",
            Kind::QueryFs => "QUERY_FS_INFORMATION",
            Kind::SetFile => "SET_FILE_INFORMATION",
            Kind::LockX => "LockX",
            Kind::UnlockX => "UnlockX",
            Kind::FindFirst => "FIND_FIRST",
            Kind::WriteX => "WriteX",
            Kind::ReadX => "ReadX",
        }
    }
}

/// One operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Operation {
    /// What is asked.
    pub kind: Kind,
    /// Characters of its paths, both together for a rename; 0 where it has none.
    pub path: u32,
    /// Bytes that are read or written, entries that a listing has; 0 for the others.
    pub size: u32,
}

/// The largest message, header included. The original's buffers have this size too.
pub const LARGEST_MESSAGE_BYTES: u32 = 70_000;

/// The messages of one operation as the measured loop needs them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exchange {
    /// Bytes of the request, header included; 0 where nothing is sent.
    pub request: u32,
    /// Bytes of the answer, header included.
    pub answer: u32,
    /// Bytes read from or written to files, which the throughput counts.
    pub payload: u32,
    /// What is asked.
    pub kind: Kind,
}

impl Operation {
    /// Its messages; `None` where one is too large.
    pub fn exchange(&self) -> Option<Exchange> {
        let Operation { kind, path, size } = *self;
        // Two bytes per character of a path, as on the wire of the protocol that is imitated.
        let with_path = |rest: u64| rest + 2 * u64::from(path);
        let with_size = |rest: u64| rest + u64::from(size);
        let (request, answer) = match kind {
            Kind::Deltree => (0, 0),
            Kind::Mkdir | Kind::Rmdir | Kind::Unlink => (with_path(43), 39),
            Kind::NtCreateX => (with_path(74), 87),
            Kind::Close => (47, 39),
            Kind::Rename => (with_path(47), 39),
            Kind::Flush => (41, 39),
            Kind::QueryPath => (with_path(55), 71),
            Kind::QueryFile | Kind::QueryFs => (59, 71),
            Kind::SetFile => (71, 47),
            Kind::LockX | Kind::UnlockX => (51, 39),
            Kind::FindFirst => (with_path(59), 39 + 90 * u64::from(size)),
            Kind::WriteX => (with_size(59), 55),
            Kind::ReadX => (59, with_size(59)),
        };
        let fits = |bytes: u64| u32::try_from(bytes).ok().filter(|bytes| *bytes <= LARGEST_MESSAGE_BYTES);
        let payload = if matches!(kind, Kind::ReadX | Kind::WriteX) { size } else { 0 };
        Some(Exchange { request: fits(request)?, answer: fits(answer)?, payload, kind })
    }
}
