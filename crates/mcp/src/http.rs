//! The HTTP half of a connection: POST, GET and DELETE through the program's own client, with our bounds and our leniency.
