//! stub
use crate::cli::Explain;
use crate::report::{Failed, Said};
/// stub
pub async fn explain(_args: &Explain) -> Result<Said, Failed> {
    todo!()
}
