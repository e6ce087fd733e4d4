//! Server-sent events, as far as a stream of chat completions uses them: the `data` of each event. Pure.

/// Puts together the events of a stream whose pieces may end anywhere, also within a character or a line end.
#[derive(Debug)]
pub(super) struct Events {
    /// The line that is not complete yet.
    line: Vec<u8>,
    /// The event that is not complete yet.
    data: Vec<u8>,
    has_data: bool,
    /// The last byte was a `\r`: a `\n` that follows belongs to it.
    after_cr: bool,
    /// Nothing but perhaps a byte order mark was seen.
    first_line: bool,
    limit: usize,
}

/// An event is larger than the reader allows.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooLarge;

impl Events {
    /// `limit`: most bytes that an event, or a line, may have.
    pub(super) fn new(limit: usize) -> Self {
        Self {
            line: Vec::new(),
            data: Vec::new(),
            has_data: false,
            after_cr: false,
            first_line: true,
            limit,
        }
    }

    /// Takes the next piece; appends the data of each event that it completes.
    pub(super) fn push(
        &mut self,
        mut bytes: &[u8],
        events: &mut Vec<Vec<u8>>,
    ) -> Result<(), TooLarge> {
        while !bytes.is_empty() {
            if std::mem::take(&mut self.after_cr) && bytes[0] == b'\n' {
                bytes = &bytes[1..];
                continue;
            }
            let end = bytes.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
            let part = &bytes[..end.unwrap_or(bytes.len())];
            if self.line.len() + part.len() > self.limit {
                return Err(TooLarge);
            }
            self.line.extend_from_slice(part);
            let Some(end) = end else { return Ok(()) };
            self.after_cr = bytes[end] == b'\r';
            bytes = &bytes[end + 1..];
            events.extend(self.end_line()?);
        }
        Ok(())
    }

    /// The stream is over: an event whose blank line is missing counts all the same. Some servers forget the last one.
    pub(super) fn end(&mut self) -> Result<Option<Vec<u8>>, TooLarge> {
        if !self.line.is_empty() {
            self.end_line()?;
        }
        Ok(self.end_event())
    }

    fn end_line(&mut self) -> Result<Option<Vec<u8>>, TooLarge> {
        let line = std::mem::take(&mut self.line);
        let mut line = &line[..];
        if std::mem::take(&mut self.first_line) {
            line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
        }
        if line.is_empty() {
            return Ok(self.end_event());
        }
        // Comments keep connections alive; `event`, `id` and `retry` say nothing that a chat completion needs.
        if let Some(value) = line.strip_prefix(b"data") {
            let value = match value {
                [] => value,
                [b':', rest @ ..] => rest.strip_prefix(b" ").unwrap_or(rest),
                _ => return Ok(None),
            };
            if self.data.len() + value.len() >= self.limit {
                return Err(TooLarge);
            }
            if self.has_data {
                self.data.push(b'\n');
            }
            self.has_data = true;
            self.data.extend_from_slice(value);
        }
        Ok(None)
    }

    fn end_event(&mut self) -> Option<Vec<u8>> {
        let data = std::mem::take(&mut self.data);
        std::mem::take(&mut self.has_data).then_some(data)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn events(pieces: &[&[u8]], limit: usize) -> Result<Vec<String>, TooLarge> {
        let mut parser = Events::new(limit);
        let mut events = Vec::new();
        for piece in pieces {
            parser.push(piece, &mut events)?;
        }
        events.extend(parser.end()?);
        let text = |event: Vec<u8>| String::from_utf8_lossy(&event).into_owned();
        Ok(events.into_iter().map(text).collect())
    }

    #[test]
    fn events_are_found() {
        for (stream, expect) in [
            ("data: a\n\ndata:b\n\n", &["a", "b"][..]),
            ("data: a\r\n\r\ndata: b\r\r", &["a", "b"]),
            (": keep-alive\n\nevent: x\nid: 1\ndata: a\n\n\n\n", &["a"]),
            ("data: one\ndata: two\n\n", &["one\ntwo"]),
            ("data\n\ndata:\n\n", &["", ""]),
            ("data:  two spaces\n\n", &[" two spaces"]),
            ("\u{feff}data: bom\n\n", &["bom"]),
            ("data: no blank line", &["no blank line"]),
            ("database: x\n\nretry: 1\n\n", &[]),
            ("", &[]),
        ] {
            assert_eq!(
                events(&[stream.as_bytes()], 100).as_deref(),
                Ok(expect)
                    .map(|e| e.iter().map(|e| (*e).to_owned()).collect::<Vec<_>>())
                    .as_deref(),
                "{stream:?}"
            );
        }
    }

    #[test]
    fn nothing_grows_without_a_bound() {
        let long = "x".repeat(101);
        assert_eq!(
            events(&[long.as_bytes()], 100),
            Err(TooLarge),
            "a line without an end"
        );
        let halves: Vec<_> = vec![&b"xxxxxxxxxx"[..]; 11];
        assert_eq!(events(&halves, 100), Err(TooLarge), "in pieces");
        let lines = "data: 0123456789\n".repeat(10);
        assert_eq!(
            events(&[lines.as_bytes()], 100),
            Err(TooLarge),
            "an event of many lines"
        );
    }

    proptest! {
        #[test]
        fn pieces_may_end_at_any_byte(
            texts in prop::collection::vec("[ -~é€😀]{0,20}", 1..6),
            line_end in prop::sample::select(vec!["\n", "\r\n", "\r"]),
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
        ) {
            let stream: String = texts.iter().map(|text| format!(": hi{line_end}data: {text}{line_end}{line_end}")).collect();
            let bytes = stream.as_bytes();
            let mut at: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
            at.extend([0, bytes.len()]);
            at.sort_unstable();
            let pieces: Vec<&[u8]> = at.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
            prop_assert_eq!(events(&pieces, 1_000), Ok(texts));
        }
    }
}
