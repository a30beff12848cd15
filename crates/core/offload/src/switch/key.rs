//! Keys: the site's secret and what comes from it.

use raddle_wire::native::JobKey;

/// The secret of a site, from which the keys of all its jobs come.
#[derive(Clone, PartialEq, Eq)]
pub struct SiteSecret([u8; 32]);

impl SiteSecret {
    /// A secret from 32 secret random bytes.
    #[must_use]
    pub const fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }
}

impl std::fmt::Debug for SiteSecret {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("SiteSecret(secret)")
    }
}

/// The key of a job: the first 16 bytes of BLAKE3, keyed with the site's secret, over the job's id (4 bytes, big-endian).
#[must_use]
pub fn job_key(secret: &SiteSecret, job: u32) -> JobKey {
    let hash = blake3::keyed_hash(&secret.0, &job.to_be_bytes());
    let mut key = [0; 16];
    key.copy_from_slice(&hash.as_bytes()[..16]);
    JobKey::new(key)
}
