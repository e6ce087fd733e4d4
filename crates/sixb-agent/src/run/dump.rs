//! Requests to the model, written down for people. The folder was opened before any code of a guest ran.

use std::{
    io::{self, Write},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use cap_std::fs::{Dir, OpenOptions};

use crate::{
    chat_completions_body,
    model::{Model, ModelRequest},
};

/// Where they go.
#[derive(Debug, Clone)]
pub(super) struct Dump(Arc<Place>);

#[derive(Debug)]
struct Place {
    folder: Dir,
    next: AtomicUsize,
}

impl Dump {
    pub(super) fn into(folder: Dir) -> Self {
        Self(Arc::new(Place {
            folder,
            next: AtomicUsize::new(1),
        }))
    }

    /// Writes a request as `request-NNN.json`. A failure is for the log: the run is worth more.
    pub(super) async fn write(&self, model: Arc<dyn Model>, request: &ModelRequest) {
        let (place, request) = (Arc::clone(&self.0), request.clone());
        let written = tokio::task::spawn_blocking(move || {
            let body = chat_completions_body(&*model, &request);
            place.write(format!("{body:#}\n").as_bytes())
        });
        if let Ok(Err(error)) = written.await {
            tracing::warn!("a request is not written down: {error}");
        }
    }
}

impl Place {
    /// Numbers that are taken are passed over.
    fn write(&self, body: &[u8]) -> io::Result<()> {
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        // Attachments are in it, too.
        #[cfg(unix)]
        cap_std::fs::OpenOptionsExt::mode(&mut options, 0o600);
        loop {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            let name = format!("request-{number:03}.json");
            match self.folder.open_with(name, &options) {
                Ok(mut file) => return file.write_all(body),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
    }
}
