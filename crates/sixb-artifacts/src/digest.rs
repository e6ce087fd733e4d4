//! `Digest`: the SHA-256 of a file's bytes, which is the blob's only name.

use std::{fmt, str::FromStr};

use sha2::{Digest as _, Sha256};

const SCHEME: &str = "sha256:";
const BLOB: &str = "blob_";
/// Bytes of a SHA-256.
const LEN: usize = 32;

/// The SHA-256 of a file's bytes. Shown as `sha256:` and 64 lower-case hex digits.
///
/// ```
/// use sixb_artifacts::Digest;
/// let digest = Digest::of(b"hi");
/// assert_eq!(digest.to_string().parse::<Digest>()?, digest);
/// assert_eq!(digest.blob_id(), format!("blob_{}", digest.hex()));
/// assert!("sha256:ABC".parse::<Digest>().is_err());
/// # Ok::<(), sixb_artifacts::DigestError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Digest([u8; LEN]);

impl Digest {
    /// The digest of `bytes`. Takes about 1 ms a MiB on a machine without SHA instructions.
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// From 64 lower-case hex digits.
    pub fn from_hex(hex: &str) -> Result<Self, DigestError> {
        let digits = hex.as_bytes();
        let malformed = || DigestError(shown(hex));
        if digits.len() != 2 * LEN {
            return Err(malformed());
        }
        let mut bytes = [0; LEN];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            let (high, low) = (nibble(pair[0]), nibble(pair[1]));
            *byte = high
                .zip(low)
                .map(|(high, low)| high << 4 | low)
                .ok_or_else(malformed)?;
        }
        Ok(Self(bytes))
    }

    /// From a blob id: `blob_` and 64 lower-case hex digits.
    pub fn from_blob_id(id: &str) -> Result<Self, DigestError> {
        let hex = id
            .strip_prefix(BLOB)
            .ok_or_else(|| DigestError(shown(id)))?;
        Self::from_hex(hex).map_err(|_| DigestError(shown(id)))
    }

    /// The blob id: `blob_` and 64 lower-case hex digits.
    pub fn blob_id(&self) -> String {
        format!("{BLOB}{}", self.hex())
    }

    /// 64 lower-case hex digits.
    pub fn hex(&self) -> String {
        self.0
            .iter()
            .fold(String::with_capacity(2 * LEN), |mut hex, byte| {
                hex.extend(
                    [byte >> 4, byte & 15]
                        .map(|nibble| char::from(b"0123456789abcdef"[usize::from(nibble)])),
                );
                hex
            })
    }

    /// The 32 bytes.
    pub fn as_bytes(&self) -> &[u8; LEN] {
        &self.0
    }
}

fn nibble(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    }
}

/// Untrusted text in an error: bounded.
fn shown(text: &str) -> String {
    text.chars().take(100).collect()
}

impl FromStr for Digest {
    type Err = DigestError;

    fn from_str(text: &str) -> Result<Self, DigestError> {
        let hex = text
            .strip_prefix(SCHEME)
            .ok_or_else(|| DigestError(shown(text)))?;
        Self::from_hex(hex).map_err(|_| DigestError(shown(text)))
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SCHEME}{}", self.hex())
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl serde::Serialize for Digest {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> serde::Deserialize<'de> for Digest {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// Text that is no digest.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is no digest; one is \"sha256:\" (a blob id: \"blob_\") and 64 lower-case hex digits"
)]
pub struct DigestError(String);

/// Computes a [`Digest`] of bytes that come in pieces.
#[derive(Clone, Default)]
pub struct Hasher(Sha256);

impl Hasher {
    /// Adds a piece.
    pub fn update(&mut self, piece: &[u8]) {
        self.0.update(piece);
    }

    /// The digest of all pieces.
    pub fn finish(self) -> Digest {
        Digest(self.0.finalize().into())
    }
}

impl fmt::Debug for Hasher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hasher")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_one_spelling_is_read() {
        let hex = Digest::of(b"").hex();
        assert_eq!(
            hex,
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
        );
        for (text, right) in [
            (format!("sha256:{hex}"), true),
            (hex.clone(), false),
            (format!("SHA256:{hex}"), false),
            (format!("sha256:{}", hex.to_uppercase()), false),
            (format!("sha256:{}", &hex[1..]), false),
            (format!("sha256:{hex}0"), false),
            (format!("sha256: {}", &hex[1..]), false),
            (format!("sha256:{}é", &hex[2..]), false),
            (String::new(), false),
        ] {
            assert_eq!(text.parse::<Digest>().is_ok(), right, "{text:?}");
        }
        assert_eq!(
            Digest::from_blob_id(&format!("blob_{hex}")),
            Ok(Digest::of(b""))
        );
        assert!(Digest::from_blob_id(&hex).is_err());
    }

    #[test]
    fn pieces_give_the_digest_of_the_whole() {
        let mut hasher = Hasher::default();
        hasher.update(b"h");
        hasher.update(b"i");
        assert_eq!(hasher.finish(), Digest::of(b"hi"));
    }
}
