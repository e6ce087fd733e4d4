//! Captured output: what was kept of a stream, and the name under which the whole is spooled.

use std::{borrow::Cow, fmt};

use bytes::Bytes;
use sha2::{Digest, Sha256};

/// Names the spooled output of one command: 1–64 characters of `A–Z a–z 0–9 _ -`. Safe as a file name.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OutputId(String);

impl OutputId {
    /// The id for a tool call: the call's own id where it is safe, else `x` and the first 16 hex digits of its SHA-256.
    ///
    /// ```
    /// use sixb_sandbox::OutputId;
    /// assert_eq!(OutputId::for_call("call_1").as_str(), "call_1");
    /// assert!(OutputId::for_call("../../etc").as_str().starts_with('x'));
    /// ```
    pub fn for_call(call_id: &str) -> Self {
        let safe = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        if (1..=64).contains(&call_id.len()) && call_id.as_bytes().iter().all(safe) {
            return Self(call_id.to_owned());
        }
        let digest = Sha256::digest(call_id.as_bytes());
        Self(
            digest[..8]
                .iter()
                .fold("x".to_owned(), |text, byte| format!("{text}{byte:02x}")),
        )
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for OutputId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What was kept of one output stream. Nothing is kept twice: `tail` begins where `head` ended, or later.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CapturedStream {
    /// The start of the stream; all of it when nothing was left out.
    pub head: Bytes,
    /// The end of the stream; empty when nothing was left out.
    pub tail: Bytes,
    /// Bytes the process wrote.
    pub total_bytes: u64,
    /// Newlines the process wrote.
    pub total_newlines: u64,
    /// Bytes that the spool holds from the start of the stream; 0 when nothing was spooled.
    pub spooled_bytes: u64,
}

impl CapturedStream {
    /// A stream kept whole.
    pub fn whole(bytes: impl Into<Bytes>) -> Self {
        let head = bytes.into();
        Self {
            total_bytes: head.len() as u64,
            total_newlines: memchr::memchr_iter(b'\n', &head).count() as u64,
            head,
            ..Self::default()
        }
    }

    /// Whether something between head and tail was left out.
    pub fn truncated(&self) -> bool {
        self.omitted_bytes() > 0
    }

    /// How many bytes were left out between head and tail.
    pub fn omitted_bytes(&self) -> u64 {
        self.total_bytes
            .saturating_sub((self.head.len() + self.tail.len()) as u64)
    }

    /// All kept bytes, in order. Where something was left out a line says how many bytes.
    pub fn bytes(&self) -> Bytes {
        if self.tail.is_empty() && !self.truncated() {
            return self.head.clone();
        }
        let note = if self.truncated() {
            format!("\n[… {} bytes left out …]\n", self.omitted_bytes())
        } else {
            String::new()
        };
        [&self.head[..], note.as_bytes(), &self.tail[..]]
            .concat()
            .into()
    }

    /// [`bytes`](Self::bytes) as text; what is not UTF-8 is replaced by `U+FFFD`.
    pub fn text(&self) -> String {
        match String::from_utf8_lossy(&self.bytes()) {
            Cow::Borrowed(text) => text.to_owned(),
            Cow::Owned(text) => text,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn cut(head: &'static [u8], tail: &'static [u8], total_bytes: u64) -> CapturedStream {
        CapturedStream {
            head: Bytes::from_static(head),
            tail: Bytes::from_static(tail),
            total_bytes,
            ..CapturedStream::default()
        }
    }

    #[test]
    fn what_was_left_out_is_said_between_head_and_tail() {
        for (stream, truncated, text) in [
            (CapturedStream::whole(""), false, ""),
            (CapturedStream::whole("a\nb"), false, "a\nb"),
            (cut(b"ab", b"yz", 4), false, "abyz"),
            (
                cut(b"ab", b"yz", 104),
                true,
                "ab\n[… 100 bytes left out …]\nyz",
            ),
            (cut(b"ab", b"", 3), true, "ab\n[… 1 bytes left out …]\n"),
            (cut(b"a\xff", b"", 2), false, "a\u{FFFD}"),
        ] {
            assert_eq!(
                (stream.truncated(), stream.text().as_str()),
                (truncated, text),
                "{stream:?}"
            );
        }
        assert_eq!(CapturedStream::whole("a\n\nb").total_newlines, 2);
    }

    #[test]
    fn safe_ids_are_kept_and_others_hashed() {
        for (call, kept) in [
            ("call_1", true),
            ("A-z_9", true),
            ("", false),
            ("a/b", false),
            ("..", false),
            ("é", false),
            ("a b", false),
        ] {
            assert_eq!(OutputId::for_call(call).as_str() == call, kept, "{call:?}");
        }
        assert!(
            OutputId::for_call(&"a".repeat(64))
                .as_str()
                .starts_with("aa")
        );
        assert_eq!(OutputId::for_call(&"a".repeat(65)).as_str().len(), 17);
        assert_ne!(OutputId::for_call("a/b"), OutputId::for_call("a/c"));
    }

    proptest! {
        #[test]
        fn any_call_id_gives_a_safe_file_name(call in any::<String>()) {
            let id = OutputId::for_call(&call);
            prop_assert!((1..=64).contains(&id.as_str().len()));
            prop_assert!(id.as_str().bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'));
            prop_assert_eq!(OutputId::for_call(&call), id);
        }
    }
}
