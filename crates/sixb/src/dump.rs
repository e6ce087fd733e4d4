//! `--dump-requests`: each request to the model as a file.

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use anyhow::Result;
use futures::stream::BoxStream;
use sixb_agent::{
    CancellationToken, Model, ModelError, chat_completions_body,
    model::{AcceptedFormats, ModelEvent, ModelRequest},
};

use crate::{failure::usage, host, terminal};

/// The model, with each of its requests written down if a folder is named.
pub(crate) fn requests(model: Arc<dyn Model>, folder: Option<&Path>) -> Result<Arc<dyn Model>> {
    let Some(folder) = folder else {
        return Ok(model);
    };
    host::make_folder(folder).map_err(|error| {
        usage(format!(
            "--dump-requests {}: {error}; name a folder that you can write to",
            folder.display()
        ))
    })?;
    Ok(Arc::new(Dumped {
        model,
        folder: folder.to_owned(),
        next: AtomicUsize::new(1),
    }))
}

#[derive(Debug)]
struct Dumped {
    model: Arc<dyn Model>,
    folder: PathBuf,
    next: AtomicUsize,
}

impl Dumped {
    /// Writes `request-NNN.json`; numbers that are taken are passed over.
    fn dump(&self, request: &ModelRequest) {
        let text = format!("{:#}\n", chat_completions_body(&*self.model, request));
        loop {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            let path = self.folder.join(format!("request-{number:03}.json"));
            match host::write_new(&path, &text) {
                Ok(()) => return,
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => {
                    terminal::note(&format!(
                        "a request is not written down: {}: {error}",
                        path.display()
                    ));
                    return;
                }
            }
        }
    }
}

impl Model for Dumped {
    fn name(&self) -> &str {
        self.model.name()
    }

    fn is_scripted(&self) -> bool {
        self.model.is_scripted()
    }

    fn takes_images(&self) -> bool {
        self.model.takes_images()
    }

    fn image_formats(&self) -> AcceptedFormats {
        self.model.image_formats()
    }

    fn stream(
        &self,
        request: ModelRequest,
        cancel: CancellationToken,
    ) -> BoxStream<'static, Result<ModelEvent, ModelError>> {
        self.dump(&request);
        self.model.stream(request, cancel)
    }
}

impl fmt::Display for Dumped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.model.fmt(f)
    }
}
