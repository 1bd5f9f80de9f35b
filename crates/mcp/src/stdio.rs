//! The child-process half of a connection: a server of its own session, lines in and out, its whole tree ended at the end.
