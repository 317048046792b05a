//! Times that came out as zero.

use analysis::{Row, Table};

/// The reason why a row has no ratios, where the baseline's time is too short for the clock that took it.
pub(crate) fn below(table: &Table, row: &Row) -> Option<String> {
    let baseline = row.cells.first()?;
    let is_time = matches!(table.metric.unit.as_str(), "s" | "ms" | "us" | "ns");
    (is_time && baseline.value == Ok(0.0)).then(|| {
        format!(
            "below resolution: {} measured 0 {} at {}, so there is no ratio; give each trial more work",
            baseline.variant,
            table.metric.unit,
            table.description.row_label(&row.point)
        )
    })
}
