//! The time slice extension as parameters of workloads whose threads take locks.

mod own;
mod platform;

pub use own::{Extension, Own, Unasked, Used, of_this_thread};
pub use platform::Sliced;

use crate::{Failure, Trial};
use experiment::{Knob, Parameter, Params, Scope, counted};
use machine::{Root, SLICE_LENGTH, SliceCounts, slice_length_ns};
use rseq_slice::{Absent, Place, Slice};

/// What has to be there for it, for the descriptions of workloads.
pub const REQUIREMENT: &str = "for `slice`: Linux 7.0 or newer on x86-64, CONFIG_RSEQ_SLICE_EXTENSION=y";

/// The shortest and the longest grant that Linux lets be set.
const LENGTH_NS_MIN: i64 = 5_000;
const LENGTH_NS_MAX: i64 = 50_000;

/// `slice` and `slice-protocol`.
pub fn parameters() -> [Parameter; 2] {
    [
        Parameter::word_or_number(
            "slice",
            &["off", "on"],
            LENGTH_NS_MIN,
            LENGTH_NS_MAX,
            "the kernel's time slice extension for threads that hold the lock: `off`; `on`; or on with grants of so many \
             nanoseconds, which sets debugfs rseq/slice_ext_nsec for the trial (as root)",
        ),
        Parameter::choice(
            "slice-protocol",
            &["section", "try"],
            "when more time is asked for: `section`: from before the lock is asked for until it is given back; `try`: the \
             same, but not while the thread waits, so around each try (kduel's own locks only)",
        ),
    ]
}

/// When a thread asks for more time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// From before it asks for the lock until it has given it back.
    Section,
    /// The same, but not while it waits.
    Try,
}

/// The value of `slice`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asked {
    Off,
    On,
    /// With grants of so many nanoseconds.
    Of(u64),
}

/// What a trial was asked for, and whether it can be had here.
#[derive(Debug)]
pub struct Slicing {
    asked: Asked,
    /// As it was written.
    word: String,
    protocol: Protocol,
    /// Whose area is used, where the extension is asked for.
    place: Option<Result<Place, Absent>>,
}

impl Slicing {
    /// Reads the parameters, and tries the extension out on the calling thread if it is asked for.
    ///
    /// # Errors
    /// When the description does not have them. That the kernel has no extension is no error: then the trial goes
    /// without, and says so.
    pub fn new(params: &Params) -> Result<Slicing, Failure> {
        let asked = asked(params)?;
        let protocol = match params.text("slice-protocol")? {
            "try" => Protocol::Try,
            _ => Protocol::Section,
        };
        let place = (asked != Asked::Off).then(|| Slice::enable().map(|slice| slice.place()));
        Ok(Slicing { asked, word: params.text("slice")?.into(), protocol, place })
    }

    /// The protocol that was asked for, whether it can be had or not.
    pub fn asked_protocol(&self) -> Option<Protocol> {
        self.place.as_ref().map(|_| self.protocol)
    }

    /// The protocol by which the threads ask for more time; none where they do not.
    pub fn protocol(&self) -> Option<Protocol> {
        self.place.as_ref().filter(|place| place.is_ok()).map(|_| self.protocol)
    }

    /// Leaves in `trial` what became of the requests: `used` as the threads saw it, and as the kernel counted since `before`.
    pub fn leave(&self, used: Used, before: Option<SliceCounts>, trial: &mut Trial) {
        let root = Root::real();
        let kernel = before.and_then(|before| Some(SliceCounts::read(&root)?.since(&before)));
        if let Some(kernel) = &kernel {
            for (name, count) in [
                ("grants", kernel.grants),
                ("yields", kernel.yields),
                ("expired", kernel.expired),
                ("revoked", kernel.revoked),
                ("aborted", kernel.aborted),
            ] {
                trial.counter(&format!("slice {name}, kernel"), count as f64);
            }
        }
        let by_kernel =
            kernel.map(|kernel| format!("the kernel counted {}", counted(kernel.grants, "grant")));
        let feature = format!("slice={}", self.word);
        let place = match &self.place {
            None => {
                if let Some(seen) = by_kernel {
                    trial.evidence(&feature, true, seen);
                }
                return;
            }
            Some(Err(absent)) => return trial.evidence(&feature, false, absent.to_string()),
            Some(Ok(place)) => place,
        };
        let Used { requests, grants, yields, lost } = used;
        for (name, count) in [("requests", requests), ("grants", grants), ("yields", yields), ("lost", lost)]
        {
            trial.counter(&format!("slice {name}"), count as f64);
        }
        if let Err(why) = self.check_length(&root) {
            return trial.evidence(&feature, false, why);
        }
        // A grant that was revoked looks to its thread like a move to another CPU. The kernel knows, but counts for all.
        let ran = grants > 0 || (lost > 0 && kernel.is_some_and(|kernel| kernel.grants > 0));
        let by_kernel = by_kernel.map_or(String::new(), |words| format!("; {words}"));
        let mut seen = format!(
            "{}, {} at the end of a section, {yields} of them given back, {} lost meanwhile{by_kernel}",
            counted(requests, "request"),
            counted(grants, "grant"),
            counted(lost, "request"),
        );
        if !ran {
            seen += match place {
                Place::Libc => "; libc's rseq area",
                Place::Own => "; an rseq area of its own",
            };
            seen += match kernel {
                None if lost > 0 => {
                    "; whether the lost ones were granted only the kernel's counts tell (CONFIG_RSEQ_STATS, \
                                     debugfs, root)"
                }
                _ => "; take more threads than CPUs, or longer trials",
            };
        }
        trial.evidence(&feature, ran, seen);
    }

    /// Whether grants are as long as was asked for.
    fn check_length(&self, root: &Root) -> Result<(), String> {
        match (self.asked, slice_length_ns(root)) {
            (Asked::Of(asked_ns), Some(found_ns)) if found_ns != asked_ns => {
                Err(format!("grants were of {found_ns} ns: something else has set debugfs {SLICE_LENGTH}"))
            }
            (Asked::Of(_), None) => Err(format!(
                "the length of grants could not be set: debugfs {SLICE_LENGTH} cannot be read; run as root with debugfs \
                 mounted"
            )),
            _ => Ok(()),
        }
    }
}

/// The settings of the machine that the parameters need: the length of a grant, where this kernel lets it be set.
///
/// # Errors
/// When the description does not have them.
pub fn knobs(params: &Params, root: &Root) -> Result<Vec<Knob>, Failure> {
    let knob = match asked(params)? {
        Asked::Of(length_ns) if slice_length_ns(root).is_some() => {
            Some(Knob { scope: Scope::Debugfs(SLICE_LENGTH.into()), value: length_ns.to_string() })
        }
        _ => None,
    };
    Ok(knob.into_iter().collect())
}

fn asked(params: &Params) -> Result<Asked, Failure> {
    Ok(match params.text("slice")? {
        "off" => Asked::Off,
        "on" => Asked::On,
        _ => Asked::Of(params.count("slice")?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use experiment::Outcome;

    fn params(slice: &str, protocol: &str) -> Params {
        let values = [("slice", slice), ("slice-protocol", protocol)];
        let set = values.map(|(name, value)| (name.to_string(), value.to_string())).into();
        crate::find("global-lock").unwrap().describe().params(&set).unwrap()
    }

    fn evidence(slicing: &Slicing, used: Used) -> Option<(String, bool, String)> {
        let mut trial = Trial::new(1_u64.into(), vec![0], 1);
        slicing.leave(used, None, &mut trial);
        let Outcome::Done { evidence, .. } = trial.into_outcome() else { panic!("the trial is missing") };
        evidence.into_iter().next().map(|evidence| (evidence.feature, evidence.ran, evidence.seen))
    }

    #[test]
    fn the_length_of_grants_is_a_setting_where_the_kernel_has_it() {
        let tree = tempfile::tempdir().unwrap();
        let root = Root::at(tree.path());
        assert!(knobs(&params("20_000", "try"), &root).unwrap().is_empty());
        std::fs::create_dir_all(tree.path().join("sys/kernel/debug/rseq")).unwrap();
        std::fs::create_dir_all(tree.path().join("proc/self")).unwrap();
        std::fs::write(tree.path().join("sys/kernel/debug").join(SLICE_LENGTH), "5000\n").unwrap();
        let mounts = "24 1 0:7 / /sys/kernel/debug rw - debugfs debugfs rw\n";
        std::fs::write(tree.path().join("proc/self/mountinfo"), mounts).unwrap();
        let knobs = |slice: &str| knobs(&params(slice, "try"), &root).unwrap();
        assert_eq!(knobs("20_000")[0].to_string(), "debugfs.rseq/slice_ext_nsec=20000");
        assert!(knobs("on").is_empty() && knobs("off").is_empty());
    }

    #[test]
    fn l5_an_extension_that_granted_nothing_did_not_run() {
        let with = |place| Slicing {
            asked: Asked::On,
            word: "on".into(),
            protocol: Protocol::Try,
            place: Some(place),
        };
        let asked = Used { requests: 9, ..Used::default() };
        let (feature, ran, seen) = evidence(&with(Ok(Place::Own)), asked).unwrap();
        assert_eq!((feature.as_str(), ran), ("slice=on", false));
        assert!(
            seen.starts_with("9 requests, 0 grants") && seen.contains("an rseq area of its own"),
            "{seen}"
        );

        let lost = Used { lost: 2, ..asked };
        let (_, ran, seen) = evidence(&with(Ok(Place::Libc)), lost).unwrap();
        assert!(!ran && seen.contains("only the kernel's counts tell"), "{seen}");

        let granted = Used { grants: 3, yields: 1, ..lost };
        let (_, ran, seen) = evidence(&with(Ok(Place::Libc)), granted).unwrap();
        let words =
            "9 requests, 3 grants at the end of a section, 1 of them given back, 2 requests lost meanwhile";
        assert!(ran && seen == words, "{seen}");

        let (_, ran, seen) = evidence(&with(Err(Absent::NotBuilt)), Used::default()).unwrap();
        assert!(!ran && seen.contains("CONFIG_RSEQ_SLICE_EXTENSION=y"), "{seen}");
        assert_eq!(with(Err(Absent::TooOld)).protocol(), None);
        assert_eq!(with(Ok(Place::Own)).protocol(), Some(Protocol::Try));
    }

    #[test]
    fn nothing_is_said_of_an_extension_that_nobody_asked_for() {
        let slicing = Slicing::new(&params("off", "section")).unwrap();
        assert_eq!((slicing.protocol(), evidence(&slicing, Used::default())), (None, None));
    }

    #[test]
    fn another_length_than_that_which_was_asked_for_did_not_run() {
        let tree = tempfile::tempdir().unwrap();
        let root = Root::at(tree.path());
        let slicing = Slicing {
            asked: Asked::Of(20_000),
            word: "20000".into(),
            protocol: Protocol::Section,
            place: Some(Ok(Place::Own)),
        };
        let why = slicing.check_length(&root).unwrap_err();
        assert!(why.contains("run as root with debugfs mounted"), "{why}");
    }
}
