//! Images fitted for models: whole, upright, small enough and in a format the model takes, or a note that says why not.

mod decode;
mod encode;
mod fit;
mod left_out;
mod limits;
mod resize;
mod structure;
mod watch;

pub use fit::{FittedImage, fit_image, fit_image_blocking};
pub use left_out::LeftOut;
pub use limits::{AcceptedFormats, ImageLimits};
