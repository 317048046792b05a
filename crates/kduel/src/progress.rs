//! What is shown while a run goes on: one living line on a terminal, one line per block elsewhere.

use crate::output;
use duel::{BlockDone, BootStart, Eta, Observer, Plan, TrialStart};
use experiment::{Blocks, counted};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::time::Duration;

pub struct Progress {
    bar: Option<ProgressBar>,
    decided: (usize, usize),
    blocks: Blocks,
}

impl Progress {
    /// A living line if somebody watches. Each point gets so many `blocks`.
    pub fn new(watched: bool, blocks: Blocks) -> Progress {
        let bar = watched.then(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            if let Ok(style) = ProgressStyle::with_template("{spinner} {wide_msg}") {
                bar.set_style(style);
            }
            bar
        });
        Progress { bar, decided: (0, 0), blocks }
    }

    /// Clears the living line.
    pub fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }

    /// Says sentences beside the living line, for those who do not know of it.
    pub fn voice(&self) -> Box<dyn FnMut(&str)> {
        let bar = self.bar.clone();
        Box::new(move |text: &str| print(bar.as_ref(), &format!("kduel: {text}")))
    }

    fn print(&self, line: &str) {
        print(self.bar.as_ref(), line);
    }
}

fn print(bar: Option<&ProgressBar>, line: &str) {
    match bar {
        Some(bar) => bar.println(output::plain(line)),
        None => output::say(line),
    }
}

impl Observer for Progress {
    fn begin(&mut self, plan: &Plan, done: usize) {
        self.decided = (0, plan.slots.len());
        if self.bar.is_none() {
            output::say(&in_all(plan, self.blocks));
        }
        if done > 0 {
            self.print(&format!("done already: {}", counted(done, "trial")));
        }
    }

    fn boot(&mut self, start: &BootStart<'_>) {
        let again = if start.twin { " again" } else { "" };
        let booting = format!("booting {}{again}", start.variant);
        let what = match start.block {
            0 => format!("{booting}, to see what it is"),
            block => format!("block {block}/{}  {booting}", self.blocks.cap()),
        };
        match &self.bar {
            Some(bar) => {
                bar.set_message(format!("{what}  |  {}", eta_in_words(start.eta)));
                bar.tick();
            }
            None => output::say(&what),
        }
    }

    fn trial(&mut self, start: &TrialStart<'_>) {
        if let Some(bar) = &self.bar {
            let (points_done, points) = self.decided;
            bar.set_message(format!(
                "block {}/{}  {} {}  {}  |  {points_done} of {} done  |  {}",
                start.block,
                self.blocks.cap(),
                start.slot.label,
                start.slot.point,
                start.variant,
                counted(points, "point"),
                eta_in_words(start.eta),
            ));
            // Drawn between trials only: a ticking thread would disturb what is measured.
            bar.tick();
        }
    }

    fn block(&mut self, block: &BlockDone<'_>) {
        self.decided = block.points_done;
        let (points_done, points) = block.points_done;
        let missing = match block.missing {
            0 => String::new(),
            count => format!("  {count} missing"),
        };
        let line = format!(
            "block {:>2}/{}  {} {}  {:.2} s  {}{missing}  {points_done} of {} done  {}",
            block.block,
            block.cap,
            block.slot.label,
            block.slot.point,
            block.elapsed.as_secs_f64(),
            block.so_far,
            counted(points, "point"),
            eta_in_words(block.eta),
        );
        match (&self.bar, block.decided) {
            (None, _) => output::say(&line),
            (Some(bar), true) => bar.println(line),
            (Some(_), false) => {}
        }
    }

    fn notice(&mut self, text: &str) {
        self.print(&format!("kduel: {text}"));
    }
}

/// How much a run may come to.
fn in_all(plan: &Plan, blocks: Blocks) -> String {
    let points = counted(plan.slots.len(), "point");
    let of_a_block: usize = plan.slots.iter().map(|slot| slot.sides.len()).sum();
    let trials = counted(of_a_block * blocks.cap() as usize, "trial");
    match blocks {
        Blocks::Exactly(_) => format!("{points}, {blocks} each, {trials} in all"),
        Blocks::UntilDecided => {
            format!("{points} until decided, at most {} blocks each, at most {trials} in all", blocks.cap())
        }
    }
}

fn eta_in_words(eta: Eta) -> String {
    if eta.at_most.is_zero() {
        return String::new();
    }
    let (likely, at_most) = (in_words(eta.likely), in_words(eta.at_most));
    match likely == at_most {
        true => format!("ETA {likely}"),
        false => format!("ETA {likely}, at most {at_most}"),
    }
}

fn in_words(duration: Duration) -> String {
    let seconds = duration.as_secs_f64().ceil() as u64;
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min {:02} s", seconds / 60, seconds % 60),
        _ => format!("{} h {:02} min", seconds / 3600, seconds % 3600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use experiment::{Entry, Experiment, Point, Variant};

    #[test]
    fn how_much_it_is_in_words() {
        let plan = |points: &str| {
            let mut entry = Entry::of("exec");
            entry.points = Point::list(points);
            let variants = vec![Variant::parse("a").unwrap(), Variant::parse("b:nice=1").unwrap()];
            let experiment = Experiment::new(vec![entry], variants);
            Plan::of(&crate::session::header(experiment).unwrap()).unwrap()
        };
        assert_eq!(in_all(&plan("1"), Blocks::Exactly(1)), "1 point, 1 block each, 3 trials in all");
        assert_eq!(in_all(&plan("1,2"), Blocks::Exactly(10)), "2 points, 10 blocks each, 60 trials in all");
        assert_eq!(
            in_all(&plan("1,2"), Blocks::UntilDecided),
            "2 points until decided, at most 40 blocks each, at most 240 trials in all"
        );
    }

    #[test]
    fn an_eta_names_its_cap_when_it_may_be_longer() {
        let eta = |likely, at_most| {
            eta_in_words(Eta { likely: Duration::from_secs(likely), at_most: Duration::from_secs(at_most) })
        };
        assert_eq!(eta(61, 7200), "ETA 1 min 01 s, at most 2 h 00 min");
        assert_eq!(eta(5, 5), "ETA 5 s");
        assert_eq!(eta(0, 0), "");
    }
}
