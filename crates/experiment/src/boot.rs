//! What a variant boots.

use crate::{AskError, Experiment, Knob, KnobError, Scope, TargetKind, Variant, nearest};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What a kernel is booted from and with: all knobs of a variant that only a new boot can turn.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct BootSpec {
    /// The kernel as it was given: a path, several files of one package joined with `+`, or `installed`. None leaves
    /// the choice to the target: a virtual machine boots the kernel that runs on the host, another machine keeps its own.
    pub kernel: Option<String>,
    /// Further boot arguments, one word each. The kernel takes the last of those that contradict each other.
    pub append: Vec<String>,
    /// Settings of the virtual machine by name without `vm.`: `cpus`, `memory`; each one checked.
    pub vm: BTreeMap<String, String>,
}

/// The nanoseconds that each instruction takes where the clock counts instructions.
pub const VIRTUAL_NS_PER_INSTRUCTION: u32 = 2;

impl BootSpec {
    /// Whether nothing is asked of the boot.
    pub fn is_empty(&self) -> bool {
        *self == BootSpec::default()
    }

    /// What these knobs ask of a boot; later ones go before earlier ones, boot arguments add up.
    pub(crate) fn of<'a>(knobs: impl IntoIterator<Item = &'a Knob>) -> BootSpec {
        let mut spec = BootSpec::default();
        let mut proxy = None;
        for Knob { scope, value } in knobs {
            match scope {
                Scope::Kernel => spec.kernel = Some(value.clone()),
                Scope::Append => spec.append.extend(value.split_whitespace().map(str::to_string)),
                Scope::Proxy => proxy = Some(value == "on"),
                Scope::Vm(name) => {
                    spec.vm.insert(name.clone(), value.clone());
                }
                _ => {}
            }
        }
        spec.append.extend(proxy.map(|on| format!("sched_proxy_exec={}", u8::from(on))));
        spec
    }
}

impl Experiment {
    /// What `variant` asks of its boot: its own knobs before those that are set for all; boot arguments add up.
    pub fn boot_spec(&self, variant: &Variant) -> BootSpec {
        // Those of an experiment that was checked can all be meant.
        let of_all = self.boot_knobs_of_all().unwrap_or_default();
        BootSpec::of(of_all.iter().chain(&variant.knobs))
    }

    /// The knobs that trials of `variant` are under: its own, and those of its boot that are set for all.
    pub fn knobs_of(&self, variant: &Variant) -> Vec<Knob> {
        let is_own = |knob: &Knob| variant.knobs.iter().any(|own| own.scope == knob.scope);
        let mut knobs = self.boot_knobs_of_all().unwrap_or_default();
        knobs.retain(|knob| !is_own(knob));
        knobs.extend(variant.knobs.iter().cloned());
        knobs
    }

    /// Whether the clock of the variant's machine counts instructions, so that repeats are the same to the digit.
    pub fn in_virtual_time(&self, variant: &Variant) -> bool {
        self.boot_spec(variant).vm.get("clock").is_some_and(|clock| clock == "virtual")
    }

    /// Whether any variant asks something of its boot.
    pub fn asks_of_boots(&self) -> bool {
        self.variants.iter().any(|variant| !self.boot_spec(variant).is_empty())
    }

    /// The boot knobs among what is set for all variants.
    fn boot_knobs_of_all(&self) -> Result<Vec<Knob>, KnobError> {
        let of_boot = self.set.iter().filter(|(key, _)| is_boot_key(key));
        of_boot.map(|(key, value)| Knob::parse(key, value)).collect()
    }

    /// Whether the target can turn all the boot knobs there are, and the variants go by one clock.
    pub(crate) fn check_boot_knobs(&self) -> Result<(), AskError> {
        let of_all = self.boot_knobs_of_all()?;
        for knob in of_all.iter().chain(self.variants.iter().flat_map(|variant| &variant.knobs)) {
            let why = match (&self.target, &knob.scope) {
                (TargetKind::Local, Scope::Vm(_)) => {
                    "it is a setting of a virtual machine; `--target vm` makes one"
                }
                (TargetKind::Local, scope) if scope.is_of_boot() => {
                    "only a boot can; `--target vm` boots each variant in a virtual machine of its own"
                }
                (TargetKind::Ssh { .. }, Scope::Vm(_)) => {
                    "it is a setting of a virtual machine; leave it out"
                }
                _ => continue,
            };
            return Err(AskError::Misplaced { key: knob.key(), target: self.target.clone(), why });
        }
        let (counted, other): (Vec<&Variant>, Vec<&Variant>) =
            self.variants.iter().partition(|variant| self.in_virtual_time(variant));
        match (counted.first(), other.first()) {
            (Some(counted), Some(other)) => {
                Err(AskError::Clocks { counted: counted.name.clone(), other: other.name.clone() })
            }
            _ => Ok(()),
        }
    }
}

/// Whether a key among what is set for all variants is a boot knob.
pub(crate) fn is_boot_key(key: &str) -> bool {
    matches!(key, "kernel" | "append" | "proxy") || key.starts_with("vm.")
}

/// A setting of a virtual machine: its name, what it takes, and whether a value is of that.
type VmSetting = (&'static str, &'static str, fn(&str) -> bool);

const VM_SETTINGS: [VmSetting; 10] = [
    ("cpus", "a whole number from 1 to 4096", |value| within(value, 1, 4096)),
    ("memory", "MiB from 16 to 16777216", |value| within(value, 16, 16 << 20)),
    ("topology", "SOCKETS,CORES,THREADS such as `2,4,2`, each from 1 to 4096", |value| {
        value.split(',').count() == 3 && value.split(',').all(|count| within(count, 1, 4096))
    }),
    ("numa", "a number of nodes from 1 to 128", |value| within(value, 1, 128)),
    ("machine", "`q35` or `microvm`", |value| matches!(value, "q35" | "microvm")),
    ("accel", "`auto`, `kvm` or `tcg`", |value| matches!(value, "auto" | "kvm" | "tcg")),
    ("clock", "`host` or `virtual`", |value| matches!(value, "host" | "virtual")),
    ("pin", "a list of the host's CPUs such as `0-3,8`", crate::knob::is_cpu_list),
    ("overlap", "`on` or `off`", |value| matches!(value, "on" | "off")),
    ("timeout", "seconds from 1 to 86400", |value| within(value, 1, 86_400)),
];

fn within(value: &str, least: u32, most: u32) -> bool {
    value.bytes().all(|byte| byte.is_ascii_digit())
        && value.parse::<u32>().is_ok_and(|number| (least..=most).contains(&number))
}

/// Whether a setting of a virtual machine has this name.
pub(crate) fn check_vm_name(key: &str, name: &str) -> Result<(), KnobError> {
    let names = VM_SETTINGS.map(|(name, ..)| name);
    if names.contains(&name) {
        return Ok(());
    }
    let hint = match nearest(name, names) {
        Some(name) => format!("did you mean `vm.{name}`?"),
        None => format!("known are: {}", names.map(|name| format!("vm.{name}")).join(", ")),
    };
    Err(KnobError::Unknown { key: key.into(), hint })
}

/// What a setting of a virtual machine takes, if `value` is not of it.
pub(crate) fn refuses_vm_value(name: &str, value: &str) -> Option<&'static str> {
    let (_, wanted, takes) = VM_SETTINGS.iter().find(|(known, ..)| *known == name)?;
    (!takes(value)).then_some(wanted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Axis, Description, Entry};

    fn plain() -> Description {
        let axis = Axis {
            name: "threads".into(),
            heading: "Case".into(),
            suffix: String::new(),
            points: vec![crate::Point::from(1)],
            range: None,
        };
        Description {
            name: "x".into(),
            summary: String::new(),
            about: String::new(),
            source: String::new(),
            axis,
            parameters: Vec::new(),
            metrics: Vec::new(),
            requirements: Vec::new(),
        }
    }

    #[test]
    fn a_variant_goes_before_the_experiment_and_boot_arguments_add_up() {
        let variant = Variant::parse("b:kernel=new,append=quiet nosmt,proxy=off,vm.cpus=8,nice=1").unwrap();
        let mut experiment = Experiment::new(vec![Entry::of("x")], vec![variant]);
        for (key, value) in [
            ("kernel", "old"),
            ("append", "preempt=full"),
            ("proxy", "on"),
            ("vm.cpus", "2"),
            ("vm.memory", "512"),
            ("loops", "9"),
        ] {
            experiment.set.insert(key.into(), value.into());
        }
        let spec = experiment.boot_spec(&experiment.variants[0]);
        assert_eq!(spec.kernel.as_deref(), Some("new"));
        assert_eq!(spec.append, ["preempt=full", "quiet", "nosmt", "sched_proxy_exec=0"]);
        let vm: Vec<(&str, &str)> =
            spec.vm.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(vm, [("cpus", "8"), ("memory", "512")]);
        let knobs: Vec<String> =
            experiment.knobs_of(&experiment.variants[0]).iter().map(|knob| knob.key()).collect();
        assert_eq!(knobs, ["vm.memory", "kernel", "append", "proxy", "vm.cpus", "nice"]);
        let plain = Experiment::new(Vec::new(), vec![Variant::parse("a:nice=1").unwrap()]);
        assert!(plain.boot_spec(&plain.variants[0]).is_empty());
    }

    #[test]
    fn settings_of_a_virtual_machine_are_checked() {
        for (key, good, bad) in [
            ("vm.cpus", "4", "0"),
            ("vm.memory", "1024", "1G"),
            ("vm.topology", "2,4,2", "2,4"),
            ("vm.numa", "2", "+2"),
            ("vm.machine", "microvm", "pc"),
            ("vm.accel", "tcg", "xen"),
            ("vm.clock", "virtual", "fast"),
            ("vm.overlap", "on", "yes"),
            ("vm.pin", "0-3,8", "3-0"),
            ("vm.timeout", "60", "0.5"),
        ] {
            assert!(Knob::parse(key, good).is_ok(), "{key}={good}");
            let error = Knob::parse(key, bad).unwrap_err().to_string();
            assert!(error.contains(key) && error.contains("it takes"), "{error}");
        }
        let error = Knob::parse("vm.cpu", "4").unwrap_err().to_string();
        assert!(error.contains("`vm.cpus`"), "{error}");
        let error = Knob::parse("vm.colour", "4").unwrap_err().to_string();
        assert!(error.contains("vm.topology"), "{error}");
    }

    /// What is said of an experiment of these variants.
    fn checked(target: &str, set: &[(&str, &str)], variants: &[&str]) -> Result<Experiment, String> {
        let variants = variants.iter().map(|variant| Variant::parse(variant).unwrap()).collect();
        let mut experiment = Experiment::new(vec![Entry::of("x")], variants);
        experiment.target = TargetKind::parse(target).unwrap();
        experiment.set.extend(set.iter().map(|(key, value)| (key.to_string(), value.to_string())));
        experiment.checked(|_| Some(plain()), &["x"]).map_err(|error| error.to_string())
    }

    #[test]
    fn figures_of_two_clocks_are_not_compared() {
        let error = checked("vm", &[], &["a:vm.cpus=1", "b:vm.clock=virtual"]).unwrap_err();
        assert!(error.contains("variant b runs in virtual time and variant a by"), "{error}");
        assert!(checked("vm", &[("vm.clock", "virtual")], &["a:vm.clock=host", "b"]).is_err());
        assert!(checked("vm", &[("vm.clock", "virtual")], &["a:vm.clock=host", "b:vm.clock=host"]).is_ok());
        assert!(checked("vm", &[("vm.clock", "virtual")], &["a", "b:vm.clock=virtual"]).is_ok());
    }

    #[test]
    fn a_target_that_cannot_boot_says_which_can() {
        let asked = |target: &str, set: &[(&str, &str)], variant: &str| checked(target, set, &[variant]);
        let error = asked("local", &[], "a:kernel=bzImage").unwrap_err();
        assert!(error.contains("`kernel`") && error.contains("`--target vm`"), "{error}");
        let error = asked("local", &[("vm.cpus", "4")], "a").unwrap_err();
        assert!(error.contains("`vm.cpus`") && error.contains("`--target vm`"), "{error}");
        let error = asked("ssh:box", &[], "a:vm.cpus=4").unwrap_err();
        assert!(error.contains("ssh:box"), "{error}");
        assert!(asked("vm", &[("vm.cpus", "four")], "a").unwrap_err().contains("whole number"));
        assert!(asked("vm", &[("vm.cpus", "4")], "a:proxy=on").is_ok());
        assert!(asked("ssh:box", &[("append", "quiet")], "a:kernel=installed,rseq=off").is_ok());
        assert!(asked("local", &[], "a:rseq=off").is_ok());
    }
}
