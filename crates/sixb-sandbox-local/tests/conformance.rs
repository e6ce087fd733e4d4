//! The contract's own list of checks, against real local sandboxes.

use std::{path::PathBuf, sync::Arc};

use sixb_sandbox::{
    NetworkEnforcement,
    conformance::{Expectations, Suite},
};
use sixb_sandbox_local::LocalSandboxFactory;

async fn suite(state: PathBuf) -> Suite {
    let expect = Expectations::default()
        .network(NetworkEnforcement::PerOrigin)
        .limits(true, true, true);
    Suite::new(
        Arc::new(LocalSandboxFactory::default().state_dir(state)),
        expect,
    )
}

sixb_sandbox::conformance_tests!(suite);
