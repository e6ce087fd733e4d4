//! sixb-sandbox-local
