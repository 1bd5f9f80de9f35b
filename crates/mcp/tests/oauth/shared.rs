//! A shelf that several keyrings share, as processes share a file.

use aish_mcp::oauth::Shelf;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// The text; clones are the same shelf.
#[derive(Clone, Default)]
pub struct SharedShelf {
    text: Arc<Mutex<Option<String>>>,
    is_locked: Arc<AtomicBool>,
}

struct Held(Arc<AtomicBool>);

impl Drop for Held {
    fn drop(&mut self) {
        self.0.store(false, Ordering::SeqCst);
    }
}

impl Shelf for SharedShelf {
    fn read(&self) -> io::Result<Option<String>> {
        Ok(self.text.lock().unwrap().clone())
    }

    fn write(&self, text: &str) -> io::Result<()> {
        *self.text.lock().unwrap() = Some(text.to_owned());
        Ok(())
    }

    fn lock(&self) -> io::Result<Box<dyn Send>> {
        while self.is_locked.swap(true, Ordering::SeqCst) {
            std::thread::yield_now();
        }
        Ok(Box::new(Held(Arc::clone(&self.is_locked))))
    }
}
