//! stub
use crate::cli::Prune;
use crate::report::{Failed, Said};
/// stub
pub async fn prune(_args: &Prune) -> Result<Said, Failed> {
    todo!()
}
/// stub
pub fn when_pruned(_archive: &crate::archive::Archive, _sha: &str) -> Option<chrono::DateTime<chrono::Utc>> {
    None
}
