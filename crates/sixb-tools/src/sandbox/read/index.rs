//! Remembers where lines start, so that the next page of a file begins where the last one ended.

use std::collections::{BTreeMap, VecDeque};

use sixb_sandbox::{FileSource, FileStat};

/// Files remembered; the one unused for longest makes room.
const MAX_FILES: usize = 64;
/// Lines remembered of a file; then every second one is forgotten.
const MAX_LINES: usize = 512;

/// Known line starts of some files. Holds numbers only, at most some hundred KiB.
#[derive(Debug, Default)]
pub(super) struct LineIndex {
    /// The last used file is last.
    files: VecDeque<File>,
}

#[derive(Debug)]
struct File {
    sandbox: String,
    source: FileSource,
    version: u64,
    /// Line number → byte offset of its start.
    starts: BTreeMap<u64, u64>,
    total_lines: Option<u64>,
}

/// What is known of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Known {
    /// The last known line that is not after the one wanted, and its start.
    pub(super) before: (u64, u64),
    pub(super) total_lines: Option<u64>,
}

impl LineIndex {
    /// What is known about `line`. A changed file is forgotten; spooled output only ever grows, so its lines stay.
    pub(super) fn known(
        &mut self,
        sandbox: &str,
        source: &FileSource,
        stat: &FileStat,
        line: u64,
    ) -> Known {
        let file = self.file(sandbox, source, stat);
        let before = file
            .starts
            .range(..=line)
            .next_back()
            .map_or((1, 0), |(line, offset)| (*line, *offset));
        Known {
            before,
            total_lines: file.total_lines,
        }
    }

    /// Remembers that `line` starts at `offset`.
    pub(super) fn learn(
        &mut self,
        sandbox: &str,
        source: &FileSource,
        stat: &FileStat,
        line: u64,
        offset: u64,
    ) {
        let starts = &mut self.file(sandbox, source, stat).starts;
        starts.insert(line, offset);
        if starts.len() > MAX_LINES {
            let mut keep = false;
            starts.retain(|known, _| {
                keep = !keep;
                keep || *known == line
            });
        }
    }

    /// Remembers how many lines there are.
    pub(super) fn learn_total(
        &mut self,
        sandbox: &str,
        source: &FileSource,
        stat: &FileStat,
        total_lines: u64,
    ) {
        self.file(sandbox, source, stat).total_lines = Some(total_lines);
    }

    fn file(&mut self, sandbox: &str, source: &FileSource, stat: &FileStat) -> &mut File {
        let place = self
            .files
            .iter()
            .position(|file| file.sandbox == sandbox && file.source == *source);
        let mut file = match place.and_then(|place| self.files.remove(place)) {
            Some(file) => file,
            None => {
                if self.files.len() == MAX_FILES {
                    self.files.pop_front();
                }
                File {
                    sandbox: sandbox.to_owned(),
                    source: source.clone(),
                    version: stat.version,
                    starts: BTreeMap::new(),
                    total_lines: None,
                }
            }
        };
        if file.version != stat.version {
            file.version = stat.version;
            file.total_lines = None;
            if !matches!(source, FileSource::Output(..)) {
                file.starts.clear();
            }
        }
        self.files.push_back(file);
        let last = self.files.len() - 1;
        &mut self.files[last]
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use sixb_sandbox::{FileKind, OutputId, OutputStream, SandboxPath};

    use super::*;

    fn stat(version: u64) -> FileStat {
        FileStat::new(FileKind::File, 100, 0o644, Duration::ZERO, version)
    }

    fn path(name: &str) -> FileSource {
        SandboxPath::parse(name).expect("path").into()
    }

    #[test]
    fn the_nearest_known_line_is_found_while_the_file_is_the_same() {
        let mut index = LineIndex::default();
        let file = path("a");
        index.learn("s", &file, &stat(1), 2_001, 9_000);
        index.learn_total("s", &file, &stat(1), 5_000);
        for (line, expect) in [
            (1, (1, 0)),
            (2_000, (1, 0)),
            (2_001, (2_001, 9_000)),
            (4_000, (2_001, 9_000)),
        ] {
            let known = index.known("s", &file, &stat(1), line);
            assert_eq!(
                (known.before, known.total_lines),
                (expect, Some(5_000)),
                "{line}"
            );
        }
        assert_eq!(index.known("other", &file, &stat(1), 4_000).before, (1, 0));
        let changed = index.known("s", &file, &stat(2), 4_000);
        assert_eq!((changed.before, changed.total_lines), ((1, 0), None));
    }

    #[test]
    fn spooled_output_keeps_its_lines_as_it_grows() {
        let mut index = LineIndex::default();
        let log = FileSource::Output(OutputId::for_call("c"), OutputStream::Stdout);
        index.learn("s", &log, &stat(1), 10, 50);
        index.learn_total("s", &log, &stat(1), 10);
        let grown = index.known("s", &log, &stat(2), 11);
        assert_eq!((grown.before, grown.total_lines), ((10, 50), None));
    }

    #[test]
    fn memory_is_bounded() {
        let mut index = LineIndex::default();
        for line in 1..=100_000 {
            index.learn("s", &path("a"), &stat(1), line, line * 10);
        }
        assert_eq!(
            index.known("s", &path("a"), &stat(1), 100_000).before,
            (100_000, 1_000_000)
        );
        assert!(index.files[0].starts.len() <= MAX_LINES);
        for n in 0..200 {
            index.learn("s", &path(&n.to_string()), &stat(1), 2, 10);
        }
        assert_eq!(index.files.len(), MAX_FILES);
        assert_eq!(index.known("s", &path("199"), &stat(1), 2).before, (2, 10));
    }
}
