//! The `view_file` tool: a file of the sandbox becomes one of the run's files, which the model then sees.

mod open;

use std::sync::{Arc, LazyLock};

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use sixb_artifacts::{FileRef, MediaType, Provenance, pdf};
use sixb_sandbox::SandboxPath;

use super::{artifacts, tool_error};
use crate::{Tool, ToolContext, ToolError, ToolOutput, ToolSpec, schema, validate::typed};

const DESCRIPTION: &str = "Shows a file of the working directory: an image is shown to you as an image, of any other file \
    you get name, type and size, and the start of text. At most 25 MiB. Call it again after the file has changed. For text, \
    `read` gives more.";

/// The `view_file` tool.
///
/// A file that a tool published or a user attached gives its reference at once. Any other is read, at each call, and kept:
/// equal bytes once in a run. The result is rich content of one file; whoever runs the loop shows it to the model.
pub fn view_file() -> Arc<dyn Tool> {
    Arc::new(ViewFile)
}

/// See [`view_file`].
#[derive(Debug)]
pub(crate) struct ViewFile;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Input {
    /// The file: relative to the working directory, or an absolute path in it.
    #[schemars(length(min = 1))]
    path: String,
}

static SPEC: LazyLock<ToolSpec> = LazyLock::new(|| {
    super::builtin_spec(
        "view_file",
        "View a file",
        DESCRIPTION,
        schema::of::<Input>(),
    )
});

#[async_trait]
impl Tool for ViewFile {
    fn spec(&self) -> &ToolSpec {
        &SPEC
    }

    async fn call(&self, cx: ToolContext, input: Value) -> Result<ToolOutput, ToolError> {
        let Input { path: shown } = typed(&input)?;
        let call = cx.artifacts()?.call();
        let sandbox = cx.sandbox().await?;
        let root = sandbox.working_directory().trim_end_matches('/');
        let path = SandboxPath::parse_guest(&shown, root).map_err(tool_error)?;
        let absolute = format!("{root}/{path}");
        // Attachments are known before the sandbox is up, by their relative path.
        let files = call.run().files();
        let known = files
            .at(&absolute)
            .or_else(|| files.at(path.as_str().unwrap_or_default()));
        if let Some(known) = known
            && matches!(known.provenance, Provenance::Created | Provenance::Attached)
        {
            return Ok(ToolOutput::file(known.file));
        }
        let bytes = open::read(&*sandbox, &path, &shown, call.run().budget().limits().file).await?;
        let name = file_name(&path, &shown)?;
        if bytes.starts_with(b"%PDF-")
            && let Err(flaw) = pdf::check(&bytes)
        {
            // A model's provider refuses every later request that holds such a file.
            let text =
                format!("{shown:?} cannot be shown: {flaw}; make it anew, or look at it with bash");
            return Err(ToolError::invalid_input(text));
        }
        let viewed = call.put_viewed(bytes, name, &absolute).await;
        let file: FileRef = viewed.map_err(artifacts::tool_error)?.file;
        cx.note(format!(
            "{} of {} bytes",
            file.media_type().unwrap_or(&MediaType::OCTET_STREAM),
            file.size()
        ));
        Ok(ToolOutput::file(file))
    }
}

/// The last component, which has to be text: it becomes the name of the file for people.
fn file_name<'a>(path: &'a SandboxPath, shown: &str) -> Result<&'a str, ToolError> {
    let name = path
        .file_name()
        .and_then(|name| std::str::from_utf8(name).ok());
    name.ok_or_else(|| {
        ToolError::invalid_input(format!(
            "{shown:?} names no file that can be shown: give the path of a file"
        ))
    })
}
