//! sixb-sandbox
