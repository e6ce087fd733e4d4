//! Cleartext HTTP: every request of a connection is parsed, checked and framed anew, and goes to a connection of its own.
//!
//! So there is nothing to smuggle: no second reader ever sees the guest's framing, and an answer cannot reach the next
//! request. Names of headers keep their case; bodies are streamed in both directions.

use std::{
    convert::Infallible,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use http_body_util::BodyExt;
use hyper::{
    HeaderMap, Method, Request, Response, StatusCode, Uri, Version,
    body::Incoming,
    header::{self, HeaderName, HeaderValue},
    service::service_fn,
    upgrade::OnUpgrade,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use sixb_sandbox::DenialReason;
use tokio::{io::BufReader, net::TcpStream};
use tokio_util::sync::CancellationToken;

use super::{
    Shared,
    answer::{self, Body},
    authority::Authority,
    dial::{Failure, Fault},
    listen::Stream,
    place,
    policy::Allowed,
    proxy,
};

/// Longest head of a request or an answer, in bytes; what is read at once with its last piece comes on top.
const MAX_HEAD: usize = 64 << 10;
/// Most headers of one message.
const MAX_HEADERS: usize = 128;
/// From the end of a request to the end of the head of the next one.
const HEAD: Duration = Duration::from_secs(60);

/// What a connection may ask for.
enum Scope {
    /// Any listed origin, by absolute-form or CONNECT.
    Listed,
    /// One origin.
    Origin(Arc<Allowed>),
    /// Nothing: each request is told why.
    Nothing(Authority, DenialReason),
}

/// A tunnel that a CONNECT opened.
type Tunnel = (OnUpgrade, Authority, Option<TcpStream>);

/// Serves a client of the HTTP proxy.
pub(super) async fn proxy<S: Stream>(shared: &Arc<Shared>, guest: S) {
    if let Some((upgrade, authority, upstream)) = serve(shared, guest, Scope::Listed).await
        && let Ok(stream) = upgrade.await
    {
        let guest = BufReader::new(TokioIo::new(stream));
        place::serve(shared, guest, authority, upstream).await;
    }
}

/// Serves a client that is connected to one origin.
pub(super) async fn origin(shared: &Arc<Shared>, guest: impl Stream, allowed: Arc<Allowed>) {
    serve(shared, guest, Scope::Origin(allowed)).await;
}

/// Answers each request with the reason why not.
pub(super) async fn refuse(
    shared: &Arc<Shared>,
    guest: impl Stream,
    authority: Authority,
    reason: DenialReason,
) {
    serve(shared, guest, Scope::Nothing(authority, reason)).await;
}

async fn serve<S: Stream>(shared: &Arc<Shared>, guest: S, scope: Scope) -> Option<Tunnel> {
    let end = CancellationToken::new();
    // What the connection began ends with it.
    let _ended = end.clone().drop_guard();
    let session = Arc::new(Session {
        shared: shared.clone(),
        scope,
        end,
        tunnel: Mutex::default(),
    });
    let service = service_fn(|request| {
        let session = session.clone();
        async move { Ok::<_, Infallible>(session.answer(request).await) }
    });
    let served = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .max_buf_size(MAX_HEAD)
        .max_header_size(MAX_HEAD)
        .max_headers(MAX_HEADERS)
        .preserve_header_case(true)
        .auto_date_header(false)
        .serve_connection(TokioIo::new(guest), service)
        .with_upgrades()
        .await;
    if served.is_err_and(|error| error.is_parse()) {
        // The library answered with 400.
        let target = match &session.scope {
            Scope::Listed => "the proxy".to_owned(),
            Scope::Origin(allowed) => allowed.authority.to_string(),
            Scope::Nothing(authority, _) => authority.to_string(),
        };
        shared.audit.denied(&target, DenialReason::Request);
    }
    let mut tunnel = session
        .tunnel
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    tunnel.take()
}

/// A refusal, and of what as far as that is known.
struct Denied(String, DenialReason);

/// One connection.
struct Session {
    shared: Arc<Shared>,
    scope: Scope,
    end: CancellationToken,
    tunnel: Mutex<Option<Tunnel>>,
}

impl Session {
    async fn answer(&self, request: Request<Incoming>) -> Response<Body> {
        let outcome = if request.method() == Method::CONNECT {
            self.connect(request).await
        } else {
            self.relay(request).await
        };
        outcome.unwrap_or_else(|Denied(target, reason)| {
            self.shared.audit.denied(&target, reason);
            answer::denied(&target, reason)
        })
    }

    async fn connect(&self, mut request: Request<Incoming>) -> Result<Response<Body>, Denied> {
        let asked = request.uri().authority().map(|asked| asked.as_str());
        let unclear = || Denied("a CONNECT request".into(), DenialReason::Request);
        let authority = asked
            .and_then(|asked| Authority::parse(asked, None))
            .ok_or_else(unclear)?;
        let Scope::Listed = self.scope else {
            return Err(Denied(authority.to_string(), DenialReason::Request));
        };
        let denied = |reason| Denied(authority.to_string(), reason);
        check_framing(request.headers()).map_err(denied)?;
        check_host(&request, &authority, authority.port).map_err(denied)?;
        let authority = self.shared.policy.named(authority);
        match proxy::open(&self.shared, &authority).await {
            Ok(upstream) => {
                let upgrade = hyper::upgrade::on(&mut request);
                let mut tunnel = self.tunnel.lock().unwrap_or_else(PoisonError::into_inner);
                *tunnel = Some((upgrade, authority, upstream));
                Ok(Response::new(
                    http_body_util::Empty::new()
                        .map_err(|never| match never {})
                        .boxed(),
                ))
            }
            Err(Failure::Denied(reason)) => Err(Denied(authority.to_string(), reason)),
            Err(Failure::Failed(fault)) => Ok(answer::failed(&authority.to_string(), fault)),
        }
    }

    async fn relay(&self, request: Request<Incoming>) -> Result<Response<Body>, Denied> {
        let allowed = self.check(&request)?;
        let target = format!("http://{}", allowed.authority);
        let forwarded = match self.shared.dialer.dial(&allowed).await {
            Ok(stream) => self.forward(stream, &allowed, request).await,
            Err(failure) => Err(failure),
        };
        match forwarded {
            Ok(response) => Ok(response),
            Err(Failure::Denied(reason)) => Err(Denied(target, reason)),
            Err(Failure::Failed(fault)) => Ok(answer::failed(&target, fault)),
        }
    }

    /// Which origin a request is for; everything in it has to agree.
    fn check(&self, request: &Request<Incoming>) -> Result<Arc<Allowed>, Denied> {
        let uri = request.uri();
        let (place, allowed) = match &self.scope {
            Scope::Nothing(authority, reason) => {
                return Err(Denied(authority.to_string(), *reason));
            }
            Scope::Origin(allowed) => (allowed.authority.clone(), Ok(allowed)),
            Scope::Listed => {
                let place = place(uri)
                    .ok_or_else(|| Denied("the proxy itself".into(), DenialReason::Request))?;
                let allowed = self.shared.policy.find(false, &place);
                (place, allowed)
            }
        };
        let denied = |reason| Denied(format!("http://{place}"), reason);
        let allowed = allowed.map_err(denied)?.clone();
        // A proxy is never asked to speak TLS to the origin in the client's stead.
        if uri.scheme_str().is_some_and(|scheme| scheme != "http") {
            return Err(denied(DenialReason::Scheme));
        }
        if uri.authority().is_some() && place_in(uri) != Some(place.clone()) {
            return Err(denied(DenialReason::Authority));
        }
        check_framing(request.headers()).map_err(denied)?;
        check_host(request, &place, 80).map_err(denied)?;
        Ok(allowed)
    }

    async fn forward(
        &self,
        stream: TcpStream,
        allowed: &Allowed,
        request: Request<Incoming>,
    ) -> Result<Response<Body>, Failure> {
        let broken = |_| Failure::Failed(Fault::Response);
        let (mut sender, connection) = hyper::client::conn::http1::Builder::new()
            .max_buf_size(MAX_HEAD)
            .max_header_size(MAX_HEAD)
            .max_headers(MAX_HEADERS)
            .preserve_header_case(true)
            .handshake(TokioIo::new(stream))
            .await
            .map_err(broken)?;
        let end = self.end.clone();
        self.shared.spawn(async move {
            end.run_until_cancelled_owned(connection).await;
        });
        let request = outgoing(request, allowed).ok_or(Failure::Failed(Fault::Response))?;
        let response = sender.send_request(request).await.map_err(broken)?;
        if response.status() == StatusCode::SWITCHING_PROTOCOLS {
            return Err(Failure::Failed(Fault::Response));
        }
        Ok(incoming(response))
    }
}

/// Host and port of an absolute URI of cleartext http.
fn place_in(uri: &Uri) -> Option<Authority> {
    Authority::parse(uri.authority()?.as_str(), Some(80))
}

/// The same for a proxy, where another scheme has another port.
fn place(uri: &Uri) -> Option<Authority> {
    let port = match uri.scheme_str()? {
        "http" => Some(80),
        "https" => Some(443),
        _ => None,
    };
    Authority::parse(uri.authority()?.as_str(), port)
}

/// The library frames the body anew, so this is not what holds: but an ambiguous request is nobody's honest work.
fn check_framing(headers: &HeaderMap) -> Result<(), DenialReason> {
    let mut codings = headers.get_all(header::TRANSFER_ENCODING).iter();
    let chunked = match (codings.next(), codings.next()) {
        (None, _) => false,
        (Some(coding), None) if coding.as_bytes().eq_ignore_ascii_case(b"chunked") => true,
        _ => return Err(DenialReason::Request),
    };
    match headers.get_all(header::CONTENT_LENGTH).iter().count() {
        0 => Ok(()),
        1 if !chunked => Ok(()),
        _ => Err(DenialReason::Request),
    }
}

/// The Host header agrees with where the request goes.
fn check_host<B>(
    request: &Request<B>,
    place: &Authority,
    default_port: u16,
) -> Result<(), DenialReason> {
    let mut hosts = request.headers().get_all(header::HOST).iter();
    match (hosts.next(), hosts.next()) {
        (None, _) if request.version() < Version::HTTP_11 => Ok(()),
        (None, _) if request.method() == Method::CONNECT => Ok(()),
        (None, _) | (Some(_), Some(_)) => Err(DenialReason::Request),
        (Some(host), None) => {
            let host = host.to_str().ok();
            let host = host.and_then(|host| Authority::parse(host, Some(default_port)));
            match host {
                Some(host) if host == *place => Ok(()),
                _ => Err(DenialReason::Authority),
            }
        }
    }
}

/// What the origin gets: origin-form, its own name as Host, nothing that is between the client and the proxy only.
fn outgoing(request: Request<Incoming>, allowed: &Allowed) -> Option<Request<Incoming>> {
    let (mut parts, body) = request.into_parts();
    let path = parts.uri.path_and_query();
    parts.uri = match path
        .map(|path| path.as_str())
        .filter(|path| !path.is_empty())
    {
        Some(path) => path.parse().ok()?,
        None => Uri::from_static("/"),
    };
    parts.version = Version::HTTP_11;
    strip(&mut parts.headers);
    // The length is that of the body as it was read.
    parts.headers.remove(header::CONTENT_LENGTH);
    parts.headers.remove(header::EXPECT);
    let host = match allowed.authority.port {
        80 => allowed.authority.host.to_string(),
        _ => allowed.authority.to_string(),
    };
    parts
        .headers
        .insert(header::HOST, HeaderValue::from_str(&host).ok()?);
    let close = HeaderValue::from_static("close");
    parts.headers.insert(header::CONNECTION, close);
    Some(Request::from_parts(parts, body))
}

/// What the client gets. An origin cannot speak for the relay.
fn incoming(response: Response<Incoming>) -> Response<Body> {
    let (mut parts, body) = response.into_parts();
    parts.version = Version::HTTP_11;
    strip(&mut parts.headers);
    parts.headers.remove(answer::DENIED);
    parts.headers.remove(answer::FAILED);
    Response::from_parts(parts, body.boxed())
}

/// Removes what is for one hop only (RFC 9110, 7.6.1), and what is for proxies.
fn strip(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        // Whoever asks for these to be dropped wants to confuse the next reader.
        .filter(|name| *name != header::HOST && *name != header::CONTENT_LENGTH)
        .collect();
    let proxy: Vec<HeaderName> = headers
        .keys()
        .filter(|name| name.as_str().starts_with("proxy-"))
        .cloned()
        .collect();
    for name in named.iter().chain(&proxy) {
        headers.remove(name);
    }
    for name in [
        header::CONNECTION,
        HeaderName::from_static("keep-alive"),
        header::TE,
        header::TRAILER,
        header::TRANSFER_ENCODING,
        header::UPGRADE,
    ] {
        headers.remove(name);
    }
}
