use crate::cells::Cells;
use crate::contest::{Contest, Family, pairs};
use crate::looks::Rules;
use crate::verdict::{Judgement, judge};
use crate::{BlockValue, Verdict};
use experiment::{BootRecord, Header, Metric, Point, TrialRecord};
use stats::{LOOKS, Scale};

/// What is known of a run so far. Trials are added as they end; a point can be asked about at any time.
#[derive(Debug, Clone)]
pub struct Live {
    header: Header,
    pub(crate) rules: Rules,
    pub(crate) cells: Cells,
    /// All primary comparisons, in the order of points, metrics and variants.
    contests: Vec<Contest>,
    /// By point: whether trials came since its looks were last taken.
    stale: Vec<bool>,
}

/// Whether a point needs more blocks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// Whether more blocks would change nothing that is said about the point. With a fixed number of blocks: whether
    /// they are done.
    pub decided: bool,
    /// A few words per comparison, for the progress line. While a fixed number of blocks runs they hold no verdict,
    /// since one that is looked at after every block is not what it claims to be.
    pub words: String,
    /// The number of blocks, in all, that the point seems to need; `None` when that cannot be told.
    pub blocks_needed: Option<usize>,
}

/// More comparisons than this do not fit a progress line.
const WORDS: usize = 4;

impl Live {
    /// Nothing but what was asked.
    pub fn new(header: &Header) -> Live {
        let cells = Cells::new(header);
        let mut contests = Vec::new();
        for (place, point) in cells.points.iter().enumerate() {
            let description = &header.descriptions[point.workload];
            for (metric, _) in description.metrics.iter().enumerate().filter(|(_, metric)| metric.primary) {
                for (variant, knobs) in header.experiment.variants.iter().enumerate().skip(1) {
                    if header.experiment.applies(knobs, description).is_ok() {
                        contests.push(Contest { place, metric, variant, looks: Vec::new(), exact: false });
                    }
                }
            }
        }
        let stale = vec![false; cells.points.len()];
        Live { header: header.clone(), rules: Rules::of(header), cells, contests, stale }
    }

    /// Adds a trial. Tells whether it counts: one that belongs to no cell of the experiment, or whose cell and block have
    /// one already, does not.
    pub fn add(&mut self, trial: &TrialRecord) -> bool {
        let place = self.cells.add(trial, &self.header.descriptions);
        if let Some(stale) = place.and_then(|place| self.stale.get_mut(place)) {
            *stale = true;
        }
        place.is_some()
    }

    /// Adds a boot, which is a part of the time that a block takes.
    pub(crate) fn add_boot(&mut self, boot: &BootRecord) {
        self.cells.add_boot(boot);
    }

    /// What may be said about a point after the blocks that it has.
    pub fn decision(&mut self, label: &str, point: &Point) -> Decision {
        let nothing = Decision { decided: false, words: String::new(), blocks_needed: None };
        let Some(place) = self.cells.place(label, point) else { return nothing };
        let done = self.cells.points[place].last_block();
        if !self.rules.until_decided() {
            let words = self.words(place, |_, _| None);
            return Decision { decided: done >= self.rules.blocks.cap(), words, blocks_needed: None };
        }
        let looked = done as usize >= LOOKS[0].0;
        let family = self.family();
        let mut contests = self.contests.iter().filter(|contest| contest.place == place).peekable();
        // What is exact is decided when it is repeated.
        let all_exact = contests.peek().is_some() && contests.all(|contest| contest.exact);
        if !looked && !all_exact {
            return Decision { words: self.words(place, |_, _| None), ..nothing };
        }
        let judgements: Vec<(usize, usize, Judgement)> = self
            .contests
            .iter()
            .enumerate()
            .filter(|(_, contest)| contest.place == place)
            .map(|(number, contest)| (contest.metric, contest.variant, self.judge_one(number, &family)))
            .collect();
        let open = || judgements.iter().map(|(_, _, judgement)| judgement).filter(|one| !one.is_settled());
        let needed: Option<Vec<usize>> = open().map(|judgement| judgement.blocks_needed).collect();
        Decision {
            decided: open().next().is_none(),
            blocks_needed: needed.and_then(|all| all.into_iter().max()),
            words: self.words(place, |metric, variant| {
                let found = judgements.iter().find(|(m, v, _)| (*m, *v) == (metric, variant));
                found.map(|(_, _, judgement)| judgement.verdict)
            }),
        }
    }

    /// The correction over all primary comparisons, at what is there now.
    pub(crate) fn family(&mut self) -> Family {
        for contest in &mut self.contests {
            if self.stale[contest.place] {
                contest.refresh(&self.cells.points[contest.place], &self.rules);
            }
        }
        self.stale.fill(false);
        Family::of(&self.contests, &self.rules)
    }

    /// The number of primary comparisons that are tested.
    pub(crate) fn family_size(&self) -> usize {
        self.contests.iter().filter(|contest| !contest.exact).count()
    }

    /// The verdict on a variant at a point, by a metric.
    pub(crate) fn judge(&self, place: usize, metric: usize, variant: usize, family: &Family) -> Judgement {
        let same =
            |contest: &Contest| (contest.place, contest.metric, contest.variant) == (place, metric, variant);
        match self.contests.iter().position(same) {
            Some(number) => self.judge_one(number, family),
            None => self.unjudged(place, metric, variant),
        }
    }

    fn judge_one(&self, number: usize, family: &Family) -> Judgement {
        let contest = &self.contests[number];
        let point = &self.cells.points[contest.place];
        if let Some(judgement) = self.without_figures(contest.place, contest.metric, contest.variant) {
            return judgement;
        }
        let metric = self.metric(contest.place, contest.metric);
        let judgement = judge(number, contest, family, metric, point, &self.rules);
        let idle = [contest.variant, 0].iter().find_map(|side| point.sides[*side].not_exercised());
        match idle {
            Some(seen) => {
                let differs = matches!(judgement.verdict, Verdict::Better | Verdict::Worse);
                let reason = if differs { format!("{seen}; yet {}", judgement.reason) } else { seen };
                Judgement { verdict: Verdict::NotExercised, reason, ..judgement }
            }
            None => judgement,
        }
    }

    /// What is said of comparisons outside the family.
    fn unjudged(&self, place: usize, metric: usize, variant: usize) -> Judgement {
        let point = &self.cells.points[place];
        let description = &self.header.descriptions[point.workload];
        let applies = self.header.experiment.applies(&self.header.experiment.variants[variant], description);
        if variant > 0
            && let Err(missing) = applies
        {
            return Judgement::of(Verdict::NotExercised, missing.why);
        }
        self.without_figures(place, metric, variant).unwrap_or_else(|| match variant {
            0 => Judgement::of(Verdict::Baseline, "the others are compared with it"),
            _ => Judgement {
                effect: pairs(point, metric, variant).effect(&self.rules, point.last_block()),
                ..Judgement::of(Verdict::Unjudged, "the metric is shown, not judged")
            },
        })
    }

    /// The judgement where a side has no values.
    fn without_figures(&self, place: usize, metric: usize, variant: usize) -> Option<Judgement> {
        let sides = &self.cells.points[place].sides;
        let missing =
            |side: usize| sides[side].values[metric].is_empty().then(|| sides[side].why_missing(metric).why);
        let why =
            missing(variant).or_else(|| missing(0).map(|why| format!("the baseline has none: {why}")))?;
        Some(Judgement::of(Verdict::Missing, why))
    }

    pub(crate) fn metric(&self, place: usize, metric: usize) -> &Metric {
        &self.header.descriptions[self.cells.points[place].workload].metrics[metric]
    }

    /// A few words per primary comparison of a point.
    fn words(&self, place: usize, verdict: impl Fn(usize, usize) -> Option<Verdict>) -> String {
        let here: Vec<&Contest> = self.contests.iter().filter(|contest| contest.place == place).collect();
        let mut words: Vec<String> = here
            .iter()
            .take(WORDS)
            .map(|contest| {
                let Contest { metric, variant, .. } = **contest;
                let name = &self.header.experiment.variants[variant].name;
                let change = self.change_pct(place, metric, variant);
                let change = change.map_or("-".into(), |change| format!("{change:+.1} %"));
                let verdict = match verdict(metric, variant) {
                    None => "",
                    Some(Verdict::Better) => " better",
                    Some(Verdict::Worse) => " worse",
                    Some(Verdict::Same) => " same",
                    Some(Verdict::NotExercised) => " not exercised",
                    Some(Verdict::Missing) => " missing",
                    Some(_) => " undecided",
                };
                format!("{name} {} {change}{verdict}", self.metric(place, metric).name)
            })
            .collect();
        if here.len() > WORDS {
            words.push(format!("and {} more", here.len() - WORDS));
        }
        words.join(", ")
    }

    /// The estimate that verdicts rest on, in percent: one wild block moves it little. `None` where there is no ratio.
    fn change_pct(&self, place: usize, metric: usize, variant: usize) -> Option<f64> {
        let pairs = pairs(&self.cells.points[place], metric, variant);
        let comparison = pairs.compare(self.rules.seed).ok()?;
        (comparison.scale() == Scale::Ratio).then(|| (comparison.estimate() - 1.0) * 100.0)
    }

    pub(crate) fn values(&self, place: usize, metric: usize, variant: usize) -> &[BlockValue] {
        &self.cells.points[place].sides[variant].values[metric]
    }
}
