//! sixb-agent
