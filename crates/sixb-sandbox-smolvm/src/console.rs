//! What a machine printed on its console before it ended: smolvm tells that a boot failed, the console tells why.

use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom},
    path::Path,
};

/// The file in a machine's folder that its console goes to.
const LOG: &str = "agent-console.log";
/// More is not read, in bytes: the guest decides how long the file is.
const MAX: u64 = 4096;
const LINES: usize = 4;

/// The last lines of the console in `folder`, joined by ` | `; empty where there are none. Blocking.
pub(crate) fn last_lines(folder: &Path) -> String {
    let read = || -> io::Result<Vec<u8>> {
        let mut file = File::open(folder.join(LOG))?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(MAX)))?;
        let mut bytes = Vec::new();
        file.take(MAX).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    told(&read().unwrap_or_default())
}

/// A guest's words, for a person's terminal: no control characters.
fn told(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let lines: Vec<String> = text
        .lines()
        .map(|line| {
            line.chars()
                .filter(|char| !char.is_control())
                .collect::<String>()
        })
        .filter(|line| !line.trim().is_empty())
        .collect();
    lines[lines.len().saturating_sub(LINES)..].join(" | ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_are_told_without_control_characters() {
        let folder = tempfile::tempdir().expect("folder");
        assert_eq!(last_lines(folder.path()), "", "no console is no error");
        let log = format!("{}\nb\n\n\x1b[31mc\r\nd\ne", "a".repeat(10_000));
        std::fs::write(folder.path().join(LOG), log).expect("log");
        assert_eq!(last_lines(folder.path()), "b | [31mc | d | e");
    }
}
