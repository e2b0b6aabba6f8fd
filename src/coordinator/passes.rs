//! The parts of a pass that see the whole coordinator: they carry what one part says to the others.

pub mod dispatch;
pub mod letters;
pub mod publish;
pub mod save;
