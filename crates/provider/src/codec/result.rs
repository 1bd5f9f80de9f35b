//! A result with images, as one model is sent it (SPEC 6.5).
//!
//! Only where an image goes differs between formats: into the result itself, or behind all results of the round in a message of
//! the user's, under a label that names the tool. Which images a model takes, and what stands for those it does not, is the
//! same for all and decided here.

use super::words;
use crate::profile::ModelProfile;
use aish_core::image::Image;
use aish_core::message::Part;
use std::borrow::Cow;

/// What a model is sent of a result.
#[derive(Debug)]
pub(crate) struct Shown<'a> {
    /// Its text; images that are not sent are named in it.
    pub(crate) output: Cow<'a, str>,
    /// The images that are sent, in order.
    pub(crate) images: Vec<Image<'a>>,
}

/// Tells the images of a result that go along from those that are named. `types` are the media types the format takes.
pub(crate) fn shown<'a>(output: &'a str, parts: &'a [Part], profile: &ModelProfile, types: &[&str]) -> Shown<'a> {
    let mut shown = Shown {
        output: Cow::Borrowed(output),
        images: Vec::new(),
    };
    for image in Image::all(parts) {
        if !profile.images.is_yes() {
            shown.add_line(&format!("[{}, not shown: the model takes no images]", image.name()));
        } else if !types.contains(&image.media_type) {
            shown.add_line(&format!(
                "[{}, not shown: the model does not take this kind]",
                image.name()
            ));
        } else {
            shown.images.push(image);
        }
    }
    shown
}

impl<'a> Shown<'a> {
    /// For formats whose results are text alone: names the images in the text, and gives them to be put behind the results.
    pub(crate) fn take_images(&mut self, name: &str) -> Option<Following<'a>> {
        if self.images.is_empty() {
            return None;
        }
        let images = std::mem::take(&mut self.images);
        for image in &images {
            self.add_line(&format!("[{}, shown below]", image.name()));
        }
        Some(Following {
            label: words::images_of_result(name),
            images,
        })
    }

    fn add_line(&mut self, line: &str) {
        let output = self.output.to_mut();
        if !output.is_empty() && !output.ends_with('\n') {
            output.push('\n');
        }
        output.push_str(line);
    }
}

/// Images of a result that follow it in a message of the user's.
#[derive(Debug)]
pub(crate) struct Following<'a> {
    /// Whose they are, in words.
    pub(crate) label: String,
    /// The images, in order.
    pub(crate) images: Vec<Image<'a>>,
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::profile::Support;

    fn image(media_type: &str) -> Part {
        Part::Image {
            media_type: media_type.into(),
            data: "AAAA".into(),
        }
    }

    /// SPEC 6.5: images reach models that take them; else they are named.
    #[test]
    fn images_of_a_result() {
        let parts = [image("image/png"), image("image/tiff")];
        let mut profile = ModelProfile::openai_chat("http://127.0.0.1:8080/v1", "m");
        let mut both = shown("text", &parts, &profile, words::IMAGE_TYPES);
        assert_eq!(
            both.output,
            "text\n[image image/tiff, 1 KB, not shown: the model does not take this kind]"
        );
        let following = both.take_images("pics.draw").unwrap();
        assert_eq!(following.images.len(), 1);
        assert!(following.label.contains("pics.draw"), "{}", following.label);
        assert!(both.output.ends_with("\n[image image/png, 1 KB, shown below]"));
        assert!(both.take_images("pics.draw").is_none());

        profile.images = Support::No;
        let none = shown("", &parts[..1], &profile, words::IMAGE_TYPES);
        assert_eq!(
            (&*none.output, none.images.len()),
            ("[image image/png, 1 KB, not shown: the model takes no images]", 0)
        );
    }
}
