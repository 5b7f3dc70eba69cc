//! What is watched.

use std::path::PathBuf;
use std::str::FromStr;

/// What a model watches while waves execute. By default nothing: waves run in a loop that knows of
/// none of this.
///
/// As text, for command lines and environment variables: names by comma, with a value after `=`
/// where there is one. `check` is `poison,late,races,lds`.
///
/// ```
/// use kfd_model::Watch;
///
/// let watch: Watch = "check,schedule=7".parse()?;
/// assert!(watch.poison && watch.late && watch.races && watch.lds);
/// assert_eq!(watch.schedule, Some(7));
/// # Ok::<(), kfd_model::UnknownWatch>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Watch {
    /// `report`: counts instructions by how close to hardware their results are, and follows inexact
    /// results to memory, addresses and branches.
    pub report: bool,
    /// `poison`: fills registers and LDS with a pattern before a workgroup starts, and reports where
    /// one that was never written decides about memory, an address or a branch.
    pub poison: bool,
    /// `late`: results of loads appear at the `s_waitcnt` that waits for them; a use before is
    /// reported, and sees a pattern.
    pub late: bool,
    /// `races`: reports accesses of different waves to the same memory or LDS without order, one of
    /// which writes.
    pub races: bool,
    /// `lds`: reports accesses beyond the LDS that the dispatch asked for.
    pub lds: bool,
    /// `ulp=SEED`: moves results of operations that hardware rounds in its own way by -1, 0 or +1 in
    /// the last place.
    pub ulp: Option<u64>,
    /// `schedule=SEED`: starts workgroups in another order, and lets waves take turns in another
    /// order and of other lengths.
    pub schedule: Option<u64>,
    /// `trace=FILE`: writes each instruction with the registers that it changes.
    pub trace: Option<PathBuf>,
    /// `coverage=FILE`: counts executions by source line of this code object, which has DWARF. May be
    /// given more than once.
    pub coverage: Vec<PathBuf>,
}

/// A word that is no option of [`Watch`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "unknown option {0:?}; known are report, poison, late, races, lds, check, ulp=SEED, \
     schedule=SEED, trace=FILE, coverage=FILE"
)]
pub struct UnknownWatch(pub String);

impl Watch {
    /// Whether nothing is watched.
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }

    /// Adds what `other` watches.
    pub fn with(mut self, other: Self) -> Self {
        self.report |= other.report;
        self.poison |= other.poison;
        self.late |= other.late;
        self.races |= other.races;
        self.lds |= other.lds;
        self.ulp = other.ulp.or(self.ulp);
        self.schedule = other.schedule.or(self.schedule);
        self.trace = other.trace.or(self.trace);
        self.coverage.extend(other.coverage);
        self
    }
}

impl FromStr for Watch {
    type Err = UnknownWatch;

    fn from_str(text: &str) -> Result<Self, UnknownWatch> {
        let mut watch = Self::default();
        for word in text.split(',').map(str::trim).filter(|word| !word.is_empty()) {
            let unknown = || UnknownWatch(word.to_owned());
            let (name, value) = word.split_once('=').map_or((word, None), |(n, v)| (n, Some(v)));
            let seed = || value.and_then(|value| value.parse().ok()).ok_or_else(unknown);
            let file = || value.filter(|v| !v.is_empty()).map(PathBuf::from).ok_or_else(unknown);
            match name {
                "ulp" => watch.ulp = Some(seed()?),
                "schedule" => watch.schedule = Some(seed()?),
                "trace" => watch.trace = Some(file()?),
                "coverage" => watch.coverage.push(file()?),
                _ if value.is_some() => return Err(unknown()),
                "report" => watch.report = true,
                "poison" => watch.poison = true,
                "late" => watch.late = true,
                "races" => watch.races = true,
                "lds" => watch.lds = true,
                "check" => {
                    (watch.poison, watch.late, watch.races, watch.lds) = (true, true, true, true);
                }
                _ => return Err(unknown()),
            }
        }
        Ok(watch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_by_name_and_a_wrong_one_is_named() {
        let watch: Watch = "late, ulp=3,coverage=a.co,coverage=b.co".parse().unwrap();
        assert!(watch.late && !watch.races && watch.ulp == Some(3));
        assert_eq!(watch.coverage.len(), 2);
        assert!("".parse::<Watch>().unwrap().is_nothing());
        for wrong in ["lat", "ulp", "ulp=x", "late=1", "trace="] {
            assert_eq!(wrong.parse::<Watch>(), Err(UnknownWatch(wrong.to_owned())));
        }
    }
}
