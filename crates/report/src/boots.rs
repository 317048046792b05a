//! The sentence on the boots of a run.

use crate::figures::{signed_pct, significant, trimmed};
use crate::head::effect_pct;
use analysis::{Analysis, Cell, LEVEL};
use experiment::counted;

/// How long each variant took from its boot to the first word of its agent; none where nothing was booted.
pub(crate) fn sentence(analysis: &Analysis) -> Option<String> {
    let boots = analysis.boots.as_ref()?;
    let cells = boots.ready.rows.iter().flat_map(|row| &row.cells);
    let variants: Vec<String> = cells.map(variant).collect();
    let failed = match boots.failed {
        0 => String::new(),
        failed => format!("; {} failed and had to be tried again", counted(failed, "further one")),
    };
    // Few boots give intervals of less confidence than those of the verdicts.
    let effects =
        boots.ready.rows.iter().flat_map(|row| &row.cells).filter_map(|cell| cell.effect.as_ref().ok());
    let least = effects.map(|effect| effect.confidence).reduce(f64::min).filter(|least| *least < 1.0 - LEVEL);
    let intervals =
        least.map_or(String::new(), |least| format!(", {} % intervals", trimmed(least * 100.0, 1)));
    let clock = if analysis.virtual_time.is_some() { ", by the host's clock" } else { "" };
    Some(format!(
        "Boot to ready (not judged{clock}{intervals}): {}. {} came up{failed}.",
        variants.join("; "),
        counted(boots.count, "boot")
    ))
}

fn variant(cell: &Cell) -> String {
    let value = match &cell.value {
        Ok(value) => value,
        Err(missing) => return format!("{} {}", cell.variant, missing.why),
    };
    let mut words = format!("{} {} s", cell.variant, significant(*value, 3));
    if let Ok(cv) = &cell.cv_pct {
        words.push_str(&format!(" (CV {} %)", trimmed(*cv, 1)));
    }
    if let Some((estimate, low, high)) = cell.effect.as_ref().ok().and_then(effect_pct) {
        words.push_str(&format!(", {} [{low:+.1}, {high:+.1}]", signed_pct(estimate)));
    }
    words
}
