//! Listens to what is traced.

use std::{
    fmt,
    sync::{Arc, Mutex},
};

use tracing::{
    Metadata, Subscriber,
    field::{Field, Visit},
    span::{Attributes, Id, Record as Values},
};
use tracing_core::span::Current;

/// Keeps what is traced: a line per event, and one per span that grows as it is recorded.
#[derive(Clone, Default)]
pub(crate) struct Recorder {
    lines: Arc<Mutex<Vec<String>>>,
    spans: Arc<Mutex<Spans>>,
}

#[derive(Default)]
struct Spans {
    /// The place of a span's line, and what it is; its id is its place here, from 1.
    all: Vec<(usize, &'static Metadata<'static>)>,
    entered: Vec<Id>,
}

impl Recorder {
    pub(crate) fn lines(&self) -> Arc<Mutex<Vec<String>>> {
        self.lines.clone()
    }
}

struct Fields<'a>(&'a mut String);

impl Visit for Fields<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.push_str(&format!(" {}={value:?}", field.name()));
    }
}

impl Subscriber for Recorder {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut line = format!("span {}", span.metadata().name());
        span.record(&mut Fields(&mut line));
        let mut lines = self.lines.lock().expect("lines");
        lines.push(line);
        let mut spans = self.spans.lock().expect("spans");
        spans.all.push((lines.len() - 1, span.metadata()));
        Id::from_u64(spans.all.len() as u64)
    }

    fn record(&self, span: &Id, values: &Values<'_>) {
        let place = self.spans.lock().expect("spans").all[span.into_u64() as usize - 1].0;
        values.record(&mut Fields(&mut self.lines.lock().expect("lines")[place]));
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        let mut line = "event".to_owned();
        event.record(&mut Fields(&mut line));
        self.lines.lock().expect("lines").push(line);
    }

    fn enter(&self, span: &Id) {
        self.spans.lock().expect("spans").entered.push(span.clone());
    }

    fn exit(&self, _: &Id) {
        self.spans.lock().expect("spans").entered.pop();
    }

    fn current_span(&self) -> Current {
        let spans = self.spans.lock().expect("spans");
        match spans.entered.last() {
            Some(id) => Current::new(id.clone(), spans.all[id.into_u64() as usize - 1].1),
            None => Current::none(),
        }
    }
}
