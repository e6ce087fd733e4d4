//! Connectors: clients of outside services that the host sets up once and its tools share.
//!
//! A [`ConnectorHandle`] names a connector and carries the type of its client; tools hold it. A [`Connector`] says how
//! the client is made; the host registers it. A [`Connectors`] set makes each client when it is first asked for.

mod credential;

use std::{
    any::{Any, type_name},
    borrow::Cow,
    collections::BTreeMap,
    fmt,
    marker::PhantomData,
    sync::Arc,
};

use futures::future::BoxFuture;
use tokio::sync::OnceCell;

pub use credential::{Credential, CredentialError, CredentialProvider};

use crate::{ToolContext, ToolError, ToolErrorKind};

/// The name of a connector, and the type of client it gives.
///
/// ```
/// # struct Crm;
/// use sixb_tools::ConnectorHandle;
/// const CRM: ConnectorHandle<Crm> = ConnectorHandle::new("crm");
/// ```
pub struct ConnectorHandle<C> {
    name: Cow<'static, str>,
    client: PhantomData<fn() -> C>,
}

impl<C> ConnectorHandle<C> {
    /// A handle of the connector `name`.
    pub const fn new(name: &'static str) -> Self {
        Self {
            name: Cow::Borrowed(name),
            client: PhantomData,
        }
    }

    /// [`new`](Self::new) with a name that is known only when the program runs.
    pub fn named(name: impl Into<String>) -> Self {
        Self {
            name: Cow::Owned(name.into()),
            client: PhantomData,
        }
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl<C> Clone for ConnectorHandle<C> {
    fn clone(&self) -> Self {
        Self {
            name: self.name.clone(),
            client: PhantomData,
        }
    }
}

impl<C> fmt::Debug for ConnectorHandle<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ConnectorHandle({:?}, {})", self.name, type_name::<C>())
    }
}

type Client = Arc<dyn Any + Send + Sync>;
type Connect = dyn Fn() -> BoxFuture<'static, Result<Client, ToolError>> + Send + Sync;

/// How a client is made. What it needs for that (addresses, a [`Credential`]) its closure holds: neither tools nor
/// models see it.
#[derive(Clone)]
pub struct Connector {
    name: String,
    client: &'static str,
    connect: Arc<Connect>,
}

impl Connector {
    /// A connector whose client `connect` makes: called when a tool first needs it, and again after a failure.
    ///
    /// `connect` is dropped, at an await, when the call that waits for it is cancelled.
    pub fn new<C, F>(
        handle: &ConnectorHandle<C>,
        connect: impl Fn() -> F + Send + Sync + 'static,
    ) -> Self
    where
        C: Any + Send + Sync,
        F: Future<Output = Result<C, ToolError>> + Send + 'static,
    {
        Self {
            name: handle.name().to_owned(),
            client: type_name::<C>(),
            connect: Arc::new(move || {
                let made = connect();
                Box::pin(async move { Ok(Arc::new(made.await?) as Client) })
            }),
        }
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl fmt::Debug for Connector {
    /// The closure may hold secrets: it is not shown.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connector")
            .field("name", &self.name)
            .field("client", &self.client)
            .finish_non_exhaustive()
    }
}

/// The connectors of a project. Cheap to clone: clones share their clients, so one per process is enough.
///
/// - Each client is made once, when it is first asked for; callers that ask meanwhile wait for the same one.
/// - A failed connect is not kept: the next call tries again.
/// - A caller that is cancelled while it connects stops connecting; one that waits with it takes over.
#[derive(Clone, Default)]
pub struct Connectors(Arc<BTreeMap<String, Slot>>);

struct Slot {
    connector: Connector,
    made: OnceCell<Client>,
}

/// Two connectors of one project share a name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("two connectors are called `{name}`: rename one")]
pub struct DuplicateConnector {
    /// The name.
    pub name: String,
}

impl Connectors {
    /// A set.
    ///
    /// # Errors
    /// When two share a name.
    pub fn new(
        connectors: impl IntoIterator<Item = Connector>,
    ) -> Result<Self, DuplicateConnector> {
        let mut slots = BTreeMap::new();
        for connector in connectors {
            let name = connector.name.clone();
            let slot = Slot {
                connector,
                made: OnceCell::new(),
            };
            if slots.insert(name.clone(), slot).is_some() {
                return Err(DuplicateConnector { name });
            }
        }
        Ok(Self(Arc::new(slots)))
    }

    /// The names, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// The client of `handle`; made now if nobody asked before. Dropping the future stops connecting.
    ///
    /// # Errors
    /// `internal` when no connector has the name, or when it gives another type of client; whatever the connector's
    /// own closure returns.
    pub async fn get<C: Any + Send + Sync>(
        &self,
        handle: &ConnectorHandle<C>,
    ) -> Result<Arc<C>, ToolError> {
        let name = handle.name();
        let slot = self.0.get(name).ok_or_else(|| self.unknown(name))?;
        let connect = || (slot.connector.connect)();
        let client = slot.made.get_or_try_init(connect).await?.clone();
        client.downcast::<C>().map_err(|_| {
            not_set_up(name).operator(format!(
                "the connector `{name}` gives {}, the tool's handle wants {}",
                slot.connector.client,
                type_name::<C>()
            ))
        })
    }

    fn unknown(&self, name: &str) -> ToolError {
        let known: Vec<_> = self.names().collect();
        let known = match known.is_empty() {
            true => "none is registered".to_owned(),
            false => format!("registered: {}", known.join(", ")),
        };
        not_set_up(name).operator(format!(
            "no connector is called `{name}`; {known}; register it with `Sixb::builder(…).connector(…)`"
        ))
    }
}

/// A defect of the project, which a model cannot mend: it reads which service is missing, and no more.
fn not_set_up(name: &str) -> ToolError {
    ToolError::new(
        ToolErrorKind::Internal,
        format!("The connector `{name}` is not set up in this project."),
    )
}

impl fmt::Debug for Connectors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list()
            .entries(self.0.values().map(|slot| &slot.connector))
            .finish()
    }
}

impl ToolContext {
    /// The client of a connector of the project, made once per process when it is first asked for. Ends early when the
    /// call is cancelled or its deadline passes.
    ///
    /// ```
    /// use sixb_tools::{Connector, ConnectorHandle, Connectors, ToolContext, ToolError};
    ///
    /// struct Crm;
    /// const CRM: ConnectorHandle<Crm> = ConnectorHandle::new("crm");
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let connectors = Connectors::new([Connector::new(&CRM, || async { Ok(Crm) })])?;
    /// let cx = ToolContext::builder("call_1").extension(connectors).build();
    /// let crm = cx.connector(&CRM).await;
    /// assert!(crm.is_ok());
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`Connectors::get`]; `cancelled` and `timeout` as the context says.
    pub async fn connector<C: Any + Send + Sync>(
        &self,
        handle: &ConnectorHandle<C>,
    ) -> Result<Arc<C>, ToolError> {
        let none = Connectors::default();
        let connectors = self.extension::<Connectors>().unwrap_or(&none);
        let late = async {
            match self.deadline() {
                Some(deadline) => tokio::time::sleep_until(deadline.into()).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = self.cancel().cancelled() => Err(ToolError::of(ToolErrorKind::Cancelled)),
            () = late => Err(ToolError::of(ToolErrorKind::Timeout)),
            client = connectors.get(handle) => client,
        }
    }
}

#[cfg(test)]
mod tests;
