//! What is asked of kduel and what came out of it: the words of the whole project as types, with their TOML and
//! JSON forms. Nothing here reads a file, a clock or the machine.

mod alike;
mod boot;
mod counted;
mod debug_options;
mod description;
mod experiment;
mod facts;
mod kernel_config;
mod knob;
mod metric;
mod missing;
mod nearest;
mod packed_form;
mod params;
mod point;
mod record;
mod refusal;
mod target_kind;
mod toml_form;
mod variant;

pub use boot::{BootSpec, VIRTUAL_NS_PER_INSTRUCTION};
pub use counted::counted;
pub use debug_options::{cost_of, costly_options, is_woken_by, when_of};
pub use description::{Axis, Description, Kind, Parameter};
pub use experiment::{AskError, Blocks, Entry, Experiment, MARGIN_PCT, Scale};
pub use facts::{Facts, FoundConfig, NumaNode, preemption};
pub use kernel_config::KernelConfig;
pub use knob::{Knob, KnobError, Scope};
pub use metric::{Direction, Metric, Statistic};
pub use missing::{Known, Missing};
pub use nearest::{did_you_mean, nearest};
pub use packed_form::{PackError, pack, unpack};
pub use params::{ParamError, Params};
pub use point::Point;
pub use record::{
    BootRecord, Ending, Evidence, Failure, Header, Imported, Outcome, Record, Summary, TrialKey, TrialRecord,
    Usage,
};
pub use refusal::{Refusal, RefusalError};
pub use target_kind::TargetKind;
pub use toml_form::{TomlError, from_toml, to_toml};
pub use variant::{Variant, VariantError};
