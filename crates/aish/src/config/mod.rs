//! The configuration: what may be set, from where, and what comes of it (SPEC 10.1).
//!
//! Every setting is declared once, in [`settings`]. A file goes through three stages: *raw* (keys and values with their
//! places in the text), *checked* (each known, typed and in range) and *resolved* ([`Config`], plain values).
//! Layers, later over earlier: defaults, the user's file, a trusted project's file, the environment, the command line.

pub mod resolved;

pub use resolved::{
    ApprovalConfig, Config, KeyNeed, McpConfig, McpServer, McpTransport, MissingKey, ModelConfig, ProviderKind,
    ResultRole, Secret, ShellConfig, ToolsConfig, WireNames,
};
