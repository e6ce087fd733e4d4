//! Where an artifact lies in the sandbox: a function of the call, the content and the name.

use crate::{Digest, FileName};

/// The folder of artifacts, below the sandbox's working directory.
pub const ARTIFACTS_DIR: &str = ".sixb/agent/artifacts";

/// `.sixb/agent/artifacts/<16 hex of sha256(tool call id)>/<12 hex of digest>-<file name>`, relative to the working directory.
///
/// A call id is a model's text and becomes no path by itself; equal calls with equal content get equal paths.
///
/// ```
/// use sixb_artifacts::{Digest, artifact_path};
/// let path = artifact_path("call_1", &Digest::of(b"hi"), &"hi.txt".parse()?);
/// assert_eq!(path, ".sixb/agent/artifacts/74196fe72e4cdc13/8f434346648f-hi.txt");
/// # Ok::<(), sixb_artifacts::FileNameError>(())
/// ```
pub fn artifact_path(tool_call_id: &str, digest: &Digest, file_name: &FileName) -> String {
    let call = Digest::of(tool_call_id.as_bytes()).hex();
    let file = file_name.materialised(&format!("{}-", &digest.hex()[..12]));
    format!("{ARTIFACTS_DIR}/{}/{file}", &call[..16])
}
