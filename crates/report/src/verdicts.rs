//! A verdict for every judged cell, in words, with its figures and its reason.

use crate::absent::shared_reasons;
use crate::document::{Block, Cell, Head, Row, Table};
use crate::figures::{p_value, signed_pct, significant, trimmed, verdict_word};
use crate::head::{effect_pct, judged};
use crate::{Options, Style};
use analysis::{Analysis, Effect, Verdict};

/// The verdicts, below the results. None where nothing was judged.
pub(crate) fn blocks(analysis: &Analysis, style: Style, options: &Options<'_>) -> Vec<Block> {
    if judged(analysis).next().is_none() {
        return Vec::new();
    }
    let metrics = judged(analysis).any(|(table, ..)| Some(&table.metric.name) != first_metric(analysis));
    let mut head = vec![Head::words("workload"), Head::words("point")];
    if metrics {
        head.push(Head::words("metric"));
    }
    head.extend([Head::words("variant"), Head::words("verdict"), Head::figures("change")]);
    let mut confidences: Vec<f64> =
        judged(analysis).filter_map(|(.., cell)| tested(cell)?.confidence.into()).collect();
    confidences.dedup();
    // Few blocks give intervals of less confidence; where they are not all alike, each says its own.
    let interval = match confidences[..] {
        [confidence] => format!("{} % interval", trimmed(confidence * 100.0, 1)),
        _ => "interval".into(),
    };
    let all_exact = judged(analysis).all(|(.., cell)| cell.effect.as_ref().is_ok_and(|effect| effect.exact));
    if !all_exact {
        head.extend([Head::words(interval), Head::figures("p")]);
    }
    let shared = shared_reasons(analysis);
    let mut rows = Vec::new();
    for (table, row, cell) in judged(analysis) {
        if shared.iter().any(|absent| absent.is_about(cell)) {
            continue;
        }
        let mut cells =
            vec![Cell::of(table.workload.clone()), Cell::of(table.description.row_label(&row.point))];
        if metrics {
            cells.push(Cell::of(table.metric.name.clone()));
        }
        cells.push(Cell::of(cell.variant.clone()));
        cells.push(Cell::of(verdict_word(cell.verdict)).judged(cell.verdict));
        match &cell.effect {
            Ok(effect) if all_exact => cells.push(Cell::of(exact(effect))),
            Ok(effect) if effect.exact => {
                cells.extend([Cell::of(exact(effect)), Cell::of("exact"), Cell::default()]);
            }
            Ok(effect) => {
                let (change, mut interval) = change(effect);
                if confidences.len() > 1 {
                    interval = format!("{interval} {} %", trimmed(effect.confidence * 100.0, 1));
                }
                cells.extend([
                    Cell::of(change),
                    Cell::of(interval),
                    Cell::of(p_value(effect.p_corrected.unwrap_or(effect.p))),
                ]);
            }
            Err(_) => cells.extend([Cell::of("n/a"), Cell::default(), Cell::default()]),
        }
        let margin_pct = analysis.header.experiment.margin_pct;
        // What decides "same" is a narrower interval than the one shown, which may reach beyond the margin.
        let inside = |effect: &Effect| {
            effect_pct(effect).is_some_and(|(_, low, high)| low > -margin_pct && high < margin_pct)
        };
        let told = match cell.verdict {
            Verdict::Better | Verdict::Worse => true,
            Verdict::Same => cell.effect.as_ref().is_ok_and(inside),
            _ => false,
        };
        rows.push(Row { cells, remark: (!told && !cell.reason.is_empty()).then(|| cell.reason.clone()) });
    }
    let mut blocks = vec![Block::Section("Verdicts".into())];
    if style.name() == "normalized" && !options.plain {
        blocks.push(Block::Paragraph(format!(
            "Marks in the tables: + better, - worse, = same (within {} %), ? undecided, o not exercised; no mark: \
             not judged.",
            trimmed(analysis.header.experiment.margin_pct, 2)
        )));
    }
    let baseline =
        analysis.header.experiment.baseline().map_or("the baseline", |variant| variant.name.as_str());
    if all_exact {
        blocks.push(Block::Paragraph(format!("Change of the metric against {baseline}, raw sign, exact.")));
        blocks.push(Block::Table(Table { head, rows, ..Table::default() }));
        return blocks;
    }
    blocks.push(Block::Paragraph(format!(
        "Change of the metric against {baseline} over aligned blocks, so not quite that of the means above, and its \
         interval, raw sign; p corrected over all cells."
    )));
    if !rows.is_empty() {
        blocks.push(Block::Table(Table { head, rows, ..Table::default() }));
    }
    if !shared.is_empty() {
        blocks.push(Block::Items(shared.iter().map(|absent| absent.sentence(metrics)).collect()));
    }
    blocks
}

/// The effect of a cell that was tested.
fn tested(cell: &analysis::Cell) -> Option<&Effect> {
    cell.effect.as_ref().ok().filter(|effect| !effect.exact)
}

/// An effect without an interval, with more digits, since they all count.
fn exact(effect: &Effect) -> String {
    match effect_pct(effect) {
        Some((estimate, ..)) => format!("{estimate:+.4} %"),
        None => significant(effect.estimate, 6),
    }
}

fn first_metric(analysis: &Analysis) -> Option<&String> {
    judged(analysis).next().map(|(table, ..)| &table.metric.name)
}

/// An effect in words: `+3.2 %` and `[+2.1, +4.4]`.
pub(crate) fn change(effect: &Effect) -> (String, String) {
    match effect_pct(effect) {
        Some((estimate, low, high)) => (signed_pct(estimate), format!("[{low:+.1}, {high:+.1}]")),
        None => (
            format!("{}{}", if effect.estimate > 0.0 { "+" } else { "" }, significant(effect.estimate, 3)),
            format!("[{}, {}]", significant(effect.low, 3), significant(effect.high, 3)),
        ),
    }
}
