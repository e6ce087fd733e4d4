//! Finding a line in a file without holding the file.

use std::io::{Read, Result, Seek, SeekFrom};

use memchr::memchr_iter;

use crate::{LinePosition, SeekLine};

/// Bytes read at once.
const BUFFER: usize = 128 << 10;

/// Finds a line by counting newlines from `seek.from` on, holding one buffer of 128 KiB. Blocking.
///
/// `seek.from` is trusted: a wrong hint gives a wrong answer, not an error. A hint after the wanted line is not used.
/// Line 0 is line 1.
///
/// ```
/// use std::io::Cursor;
/// use sixb_sandbox::{LinePosition, SeekLine, lines::seek_line};
///
/// let mut file = Cursor::new("one\ntwo\n");
/// assert_eq!(seek_line(&mut file, SeekLine::new(2))?, LinePosition::At { offset: 4 });
/// assert_eq!(seek_line(&mut file, SeekLine::new(3))?, LinePosition::PastEnd { total_lines: 2 });
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
/// Those of `file`.
pub fn seek_line(file: &mut (impl Read + Seek), seek: SeekLine) -> Result<LinePosition> {
    let wanted = seek.line.max(1);
    let (from_line, from_offset) = match seek.from {
        (line, offset) if (1..=wanted).contains(&line) => (line, offset),
        _ => (1, 0),
    };
    file.seek(SeekFrom::Start(from_offset))?;
    let mut buffer = vec![0; BUFFER];
    // `line` starts at byte `start`, of `offset` bytes seen.
    let (mut line, mut start, mut offset) = (from_line, from_offset, from_offset);
    loop {
        let count = match file.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        let bytes = &buffer[..count];
        let missing = wanted - line;
        // Counting is several times faster than finding each one, and only one buffer holds the line.
        let newlines = memchr_iter(b'\n', bytes).count() as u64;
        if newlines < missing {
            line += newlines;
            if let Some(last) = memchr::memrchr(b'\n', bytes) {
                start = offset + last as u64 + 1;
            }
        } else if missing > 0 {
            // A line after the newline exists only where a byte follows, perhaps in the next buffer.
            let found = memchr_iter(b'\n', bytes)
                .nth(missing as usize - 1)
                .unwrap_or(count);
            (line, start) = (wanted, offset + found as u64 + 1);
        }
        offset += count as u64;
        if line == wanted && offset > start {
            return Ok(LinePosition::At { offset: start });
        }
    }
    // The line that was begun counts where it holds a byte.
    Ok(LinePosition::PastEnd {
        total_lines: if offset > start { line } else { line - 1 },
    })
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use proptest::prelude::*;

    use super::*;

    fn at(offset: u64) -> LinePosition {
        LinePosition::At { offset }
    }

    fn past(total_lines: u64) -> LinePosition {
        LinePosition::PastEnd { total_lines }
    }

    fn check(text: &[u8], seek: SeekLine, expect: LinePosition) {
        let got = seek_line(&mut Cursor::new(text), seek).expect("in memory");
        assert_eq!(got, expect, "{:?} in {} bytes", seek, text.len());
    }

    #[test]
    fn lines_end_with_a_newline() {
        for (text, line, expect) in [
            ("", 1, past(0)),
            ("a", 1, at(0)),
            ("a", 2, past(1)),
            ("a\n", 1, at(0)),
            ("a\n", 2, past(1)),
            ("a\nb", 2, at(2)),
            ("a\nb", 3, past(2)),
            ("\n", 1, at(0)),
            ("\n", 2, past(1)),
            ("\n\n", 2, at(1)),
            ("\n\n", 3, past(2)),
            ("a\r\nb\r\n", 2, at(3)),
            ("a\nb", 0, at(0)),
            ("a\nb\n", u64::MAX, past(2)),
        ] {
            check(text.as_bytes(), SeekLine::new(line), expect);
        }
    }

    #[test]
    fn a_hint_is_trusted_where_it_helps() {
        for (line, hint, expect) in [
            (3, (2, 4), at(8)),
            (2, (2, 4), at(4)),
            (1, (2, 4), at(0)),
            (9, (2, 4), past(3)),
            (4, (4, 14), past(3)),
            (5, (4, 14), past(3)),
            (2, (0, 99), at(4)),
        ] {
            check(
                b"one\ntwo\nthree\n",
                SeekLine::new(line).from(hint.0, hint.1),
                expect,
            );
        }
    }

    #[test]
    fn a_line_that_starts_at_the_end_of_a_buffer() {
        for before in [BUFFER - 2, BUFFER - 1, BUFFER, BUFFER + 1, 2 * BUFFER - 1] {
            let mut text = vec![b'x'; before];
            text.push(b'\n');
            check(&text, SeekLine::new(2), past(1));
            text.push(b'y');
            check(&text, SeekLine::new(2), at(before as u64 + 1));
            check(&text, SeekLine::new(3), past(2));
        }
    }

    /// Gives a few bytes a time, as a pipe or a network file system may.
    struct Slow(Cursor<Vec<u8>>, usize);

    impl Read for Slow {
        fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
            let count = buffer.len().min(self.1);
            self.0.read(&mut buffer[..count])
        }
    }

    impl Seek for Slow {
        fn seek(&mut self, to: SeekFrom) -> Result<u64> {
            self.0.seek(to)
        }
    }

    proptest! {
        #[test]
        fn agrees_with_splitting(text in "[ab\n]{0,40}", line in 1u64..12, piece in 1usize..7, hint in 1u64..12) {
            let mut starts = vec![0];
            starts.extend(memchr_iter(b'\n', text.as_bytes()).map(|at| at as u64 + 1));
            let total = if starts.last() == Some(&(text.len() as u64)) { starts.len() - 1 } else { starts.len() } as u64;
            let expect = if line <= total { at(starts[line as usize - 1]) } else { past(total) };
            let mut seek = SeekLine::new(line);
            if hint <= total {
                seek = seek.from(hint, starts[hint as usize - 1]);
            }
            let mut file = Slow(Cursor::new(text.clone().into_bytes()), piece);
            prop_assert_eq!(seek_line(&mut file, seek).expect("in memory"), expect);
        }
    }
}
