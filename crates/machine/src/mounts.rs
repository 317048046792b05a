//! The table of mounts.

/// A line of /proc/self/mountinfo.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// The directory of the mounted file system that is visible: `/` unless only a part was mounted.
    pub top: String,
    /// Where it is mounted.
    pub point: String,
    /// The type of the file system.
    pub kind: String,
    /// The options of the file system, such as the controllers of a cgroup hierarchy.
    pub options: Vec<String>,
}

/// The mounts of a mountinfo table; a line of another form is passed over.
pub fn parse(table: &str) -> Vec<Mount> {
    table.lines().filter_map(parse_line).collect()
}

fn parse_line(line: &str) -> Option<Mount> {
    // A varying number of optional fields stands before the lone hyphen.
    let (place, file_system) = line.split_once(" - ")?;
    let mut place = place.split(' ').skip(3);
    let (top, point) = (unescape(place.next()?), unescape(place.next()?));
    let mut file_system = file_system.split(' ');
    let kind = file_system.next()?.to_string();
    let options = file_system.nth(1).unwrap_or_default().split(',').map(str::to_string).collect();
    Some(Mount { top, point, kind, options })
}

/// The kernel writes white space and backslashes in paths as three octal digits.
fn unescape(path: &str) -> String {
    [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")]
        .iter()
        .fold(path.to_string(), |path, (escape, character)| path.replace(escape, character))
}
