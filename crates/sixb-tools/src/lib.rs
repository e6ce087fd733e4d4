//! sixb-tools
