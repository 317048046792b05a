use super::{Import, ImportError, Page};
use experiment::{
    Axis, Blocks, Description, Entry, Experiment, Header, Imported, Metric, Point, Record, Summary, Variant,
};
use std::collections::HashSet;

/// Sections of a report whose lines say what was measured, and are kept as they stand.
const KEPT: [&str; 3] = ["Machine details", "Kernel details", NOTES];

/// The heading under which kduel prints lines of a source that stand in no section of their own.
pub(crate) const NOTES: &str = "Notes of the source";

/// Figures on their way from a page into a run.
#[derive(Debug)]
pub(crate) struct Gather<'p> {
    page: &'p Page<'p>,
    workloads: Vec<Workload>,
    variants: Vec<String>,
    summaries: Vec<Summary>,
    /// The cells that have a figure: workload, row, variant and metric.
    seen: HashSet<(usize, String, String, String)>,
    /// The rows of each workload.
    rows: HashSet<(usize, String)>,
    notes: Vec<String>,
    checks: Vec<String>,
}

/// One workload of a page.
#[derive(Debug, Clone)]
pub(crate) struct Workload {
    /// What reports call it.
    pub label: String,
    /// The workload of kduel that it is, or the label.
    pub name: String,
    /// The head of the first column.
    pub heading: String,
    /// The word for the axis.
    pub axis: String,
    /// Its metrics.
    pub metrics: Vec<Metric>,
    /// The labels of its rows.
    pub rows: Vec<String>,
}

impl<'p> Gather<'p> {
    /// Nothing yet, but for the page's lines on machine and kernels.
    pub fn new(page: &'p Page<'p>) -> Gather<'p> {
        let mut gather = Gather {
            page,
            workloads: Vec::new(),
            variants: Vec::new(),
            summaries: Vec::new(),
            seen: HashSet::new(),
            rows: HashSet::new(),
            notes: Vec::new(),
            checks: Vec::new(),
        };
        let mut kept = false;
        for (_, line) in page.lines() {
            let heading = line.strip_prefix("o ");
            kept = heading.map_or(kept && !is_rule(line), |heading| KEPT.contains(&heading));
            if !kept || heading == Some(NOTES) || line.is_empty() {
                continue;
            }
            // A line that was too long for a report goes on in one that is indented.
            match (line.strip_prefix("  "), gather.notes.last_mut()) {
                (Some(rest), Some(note)) if !rest.starts_with(' ') => *note = format!("{note} {rest}"),
                _ => gather.notes.push(line.to_string()),
            }
        }
        gather
    }

    /// Keeps a line of the source, once.
    pub fn note(&mut self, line: String) {
        if !line.is_empty() && !self.notes.contains(&line) {
            // Loose lines stand before those that have a section.
            let place = self.notes.iter().position(|note| note.starts_with("o ")).unwrap_or(self.notes.len());
            self.notes.insert(place, line);
        }
    }

    /// Keeps the outcome of a check.
    pub fn check(&mut self, sentence: Option<String>) {
        self.checks.extend(sentence);
    }

    /// The variants so far, the baseline first.
    pub fn variants(&self) -> &[String] {
        &self.variants
    }

    /// The variant that the source calls `words`, under a name that is legal in experiments. Where they differ,
    /// a note keeps the words.
    pub fn variant(&mut self, words: &str) -> String {
        let words = words.trim();
        if Variant::new(words, Vec::new()).is_ok() {
            self.remember(words);
            return words.to_string();
        }
        self.variant_called(words, words)
    }

    /// Makes `name`, which is legal, a variant, in the words of the source.
    pub fn variant_named(&mut self, name: &str, words: &str) -> String {
        self.remember(name);
        if !words.is_empty() && words_of(&self.notes, name).is_none() {
            self.note(format!("{name}: {words}"));
        }
        name.to_string()
    }

    /// The variant that the source describes by `words`, under a name made of `short`, which is a part of them.
    /// The same words mean the same variant, in whatever table they stand.
    pub fn variant_called(&mut self, short: &str, words: &str) -> String {
        let known = self.variants.iter().find(|name| words_of(&self.notes, name) == Some(words)).cloned();
        known.unwrap_or_else(|| {
            let name = self.free(&slug(short));
            self.variant_named(&name, words)
        })
    }

    fn remember(&mut self, name: &str) {
        if !self.variants.iter().any(|known| known == name) {
            self.variants.push(name.to_string());
        }
    }

    /// `name`, or with a number at its end where it is taken.
    pub fn free(&self, name: &str) -> String {
        let taken = |name: &str| self.variants.iter().any(|known| known == name);
        if !taken(name) {
            return name.to_string();
        }
        let numbered = |n: usize| format!("{}-{n}", &name[..name.len().min(34)]);
        (2..).map(numbered).find(|name| !taken(name)).unwrap_or_default()
    }

    /// The place of the workload called `label`, made by `make` if it is new.
    pub fn workload(&mut self, label: &str, make: impl FnOnce() -> Workload) -> usize {
        let known = self.workloads.iter().position(|workload| workload.label == label);
        known.unwrap_or_else(|| {
            self.workloads.push(make());
            self.workloads.len() - 1
        })
    }

    /// Whether a workload is called so.
    pub fn has_workload(&self, label: &str) -> bool {
        self.workloads.iter().any(|workload| workload.label == label)
    }

    /// Gives a workload a metric, unless it has one of that name.
    pub fn metric(&mut self, workload: usize, metric: Metric) {
        if let Some(workload) = self.workloads.get_mut(workload)
            && !workload.metrics.iter().any(|known| known.name == metric.name)
        {
            workload.metrics.push(metric);
        }
    }

    /// Adds a figure of `workload`, read at `line`; `figure` has the row's label as its point and no workload yet.
    pub fn add(&mut self, workload: usize, line: usize, figure: Summary) -> Result<(), ImportError> {
        let place = workload;
        let Some(workload) = self.workloads.get_mut(place) else { return Ok(()) };
        let row = figure.point.to_string();
        if row.is_empty() {
            return Err(self.page.expected(line, "a row with a label in its first column"));
        }
        let key = (place, row.clone(), figure.variant.clone(), figure.metric.clone());
        if !self.seen.insert(key) {
            return Err(self
                .page
                .expected(line, format!("another row than `{row}`, which stands there already")));
        }
        if self.rows.insert((place, row.clone())) {
            workload.rows.push(row);
        }
        self.summaries.push(Summary { workload: workload.label.clone(), ..figure });
        Ok(())
    }

    /// Whether the cell of `figure` has one already.
    pub fn has(&self, workload: usize, figure: &Summary) -> bool {
        let key = (workload, figure.point.to_string(), figure.variant.clone(), figure.metric.clone());
        self.seen.contains(&key)
    }

    /// The run that was gathered.
    pub fn finish(self, style: &str) -> Result<Import, ImportError> {
        if self.summaries.is_empty() {
            return Err(self
                .page
                .expected(self.page.lines().count(), "at least one row of figures before the end"));
        }
        let source = self.page.source.to_string();
        let mut entries = Vec::new();
        let mut descriptions = Vec::new();
        let mut suffixes = Vec::new();
        for workload in self.workloads.into_iter().filter(|workload| !workload.rows.is_empty()) {
            let suffix = common_suffix(&workload.rows);
            let point = |row: &String| Point::new(row.strip_suffix(&suffix).unwrap_or(row));
            let points: Vec<Point> = workload.rows.iter().map(point).collect();
            let numbers: Option<Vec<u64>> = points.iter().map(Point::number).collect();
            let range = numbers.and_then(|all| Some((*all.iter().min()?, *all.iter().max()?)));
            entries.push(Entry {
                workload: workload.name.clone(),
                label: workload.label.clone(),
                points: points.clone(),
                set: Default::default(),
            });
            descriptions.push(Description {
                name: workload.name,
                summary: format!("figures read from {source}"),
                about: format!("Figures that somebody else measured, read from {source}."),
                source: source.clone(),
                axis: Axis {
                    name: match suffix.trim_start_matches('-') {
                        "" => workload.axis,
                        suffix => suffix.to_string(),
                    },
                    heading: workload.heading,
                    suffix: suffix.clone(),
                    points,
                    range,
                },
                parameters: Vec::new(),
                metrics: workload.metrics,
                requirements: Vec::new(),
            });
            suffixes.push((workload.label, suffix));
        }
        let pointed = |mut figure: Summary| {
            let suffix =
                suffixes.iter().find(|(label, _)| *label == figure.workload).map(|(_, suffix)| suffix);
            if let Some(stripped) = suffix.and_then(|suffix| figure.point.as_str().strip_suffix(suffix)) {
                figure.point = Point::new(stripped);
            }
            Record::Summary(figure)
        };
        let records = self.summaries.into_iter().map(pointed).collect();
        let variants = self.variants.into_iter().map(|name| Variant { name, knobs: Vec::new() }).collect();
        let mut experiment = Experiment::new(entries, variants);
        experiment.blocks = Blocks::Exactly(1);
        experiment.aa = false;
        let header = Header {
            run: String::new(),
            version: env!("CARGO_PKG_VERSION").into(),
            build: String::new(),
            at_unix_ms: 0,
            seed: 0,
            experiment,
            descriptions,
            directory: None,
            imported: Some(Imported { source, style: style.into(), notes: self.notes, checks: self.checks }),
        };
        Ok(Import { header, records })
    }
}

/// A figure of this row, variant and metric with nothing in it yet.
pub(crate) fn blank(row: &str, variant: &str, metric: &str) -> Summary {
    Summary {
        workload: String::new(),
        point: Point::new(row),
        variant: variant.into(),
        metric: metric.into(),
        value: None,
        stddev: None,
        cv_pct: None,
        improvement_pct: None,
    }
}

/// The words in which a source describes `variant`, if one of its lines does.
pub(crate) fn words_of<'n>(notes: &'n [String], variant: &str) -> Option<&'n str> {
    notes.iter().find_map(|note| note.strip_prefix(variant)?.strip_prefix(": "))
}

/// Whether `variant` got its name from these words.
pub(crate) fn is_named_after(variant: &str, words: &str) -> bool {
    variant == slug(words)
}

/// `words` as a legal name of a variant.
fn slug(words: &str) -> String {
    let mut name = String::new();
    for c in words.chars() {
        match c {
            _ if name.len() >= 40 => break,
            c if c.is_ascii_alphanumeric() || "_+.@".contains(c) => {
                // `a + b` reads better as `a+b`.
                if c == '+' && name.ends_with('-') {
                    name.pop();
                }
                name.push(c);
            }
            '\'' => {}
            _ if name.is_empty() || name.ends_with(['-', '+']) => {}
            _ => name.push('-'),
        }
    }
    let name = name.trim_end_matches('-');
    if name.is_empty() { "variant".into() } else { name.to_string() }
}

/// What stands behind the number in every label, if all have a number and the same behind it: `-groups`.
fn common_suffix(rows: &[String]) -> String {
    let behind = |row: &String| row.trim_start_matches(|c: char| c.is_ascii_digit()).to_string();
    let first = rows.first().map(behind).unwrap_or_default();
    let shared = rows.iter().all(|row| row.starts_with(|c: char| c.is_ascii_digit()) && behind(row) == first);
    if shared && first.starts_with('-') && first.len() > 1 { first } else { String::new() }
}

/// Whether `line` is the border of a table.
fn is_rule(line: &str) -> bool {
    line.len() >= 10 && line.bytes().all(|byte| matches!(byte, b'=' | b'-' | b'+'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_words_become_a_legal_name() {
        assert_eq!(slug("5.2-rc6 + tip's rwsem patches"), "5.2-rc6+tips-rwsem-patches");
        assert_eq!(slug("rseq_slice_ext=0"), "rseq_slice_ext-0");
        for words in ["", "---", "\u{1f980}", &"a ".repeat(100), "+", "x|y"] {
            let name = slug(words);
            assert!(Variant::new(&name, Vec::new()).is_ok(), "{words:?} became {name:?}");
        }
    }

    #[test]
    fn a_suffix_is_one_that_all_rows_share() {
        let rows = |labels: &[&str]| common_suffix(&labels.iter().map(|l| l.to_string()).collect::<Vec<_>>());
        assert_eq!(rows(&["1-groups", "16-groups"]), "-groups");
        assert_eq!(rows(&["1", "2"]), "");
        assert_eq!(rows(&["Copy", "Scale"]), "");
        assert_eq!(rows(&["1-groups", "2-clients"]), "");
        assert_eq!(rows(&["1-"]), "");
    }
}
