//! What is shown while a run goes on: one living line on a terminal, one line per block elsewhere.

use crate::output;
use duel::{BlockDone, BootStart, Eta, Observer, Plan, TrialStart};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::time::Duration;

pub struct Progress {
    bar: Option<ProgressBar>,
    decided: (usize, usize),
    cap: u32,
}

impl Progress {
    /// A living line if somebody watches.
    pub fn new(watched: bool) -> Progress {
        let bar = watched.then(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            if let Ok(style) = ProgressStyle::with_template("{spinner} {wide_msg}") {
                bar.set_style(style);
            }
            bar
        });
        Progress { bar, decided: (0, 0), cap: 0 }
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
        Some(bar) => bar.println(line),
        None => output::say(line),
    }
}

impl Observer for Progress {
    fn begin(&mut self, plan: &Plan, done: usize) {
        self.decided = (0, plan.slots.len());
        if self.bar.is_none() {
            let trials: usize = plan.slots.iter().map(|slot| slot.sides.len()).sum();
            let points = plan.slots.len();
            output::say(&format!("{points} points, at most {} blocks of {trials} trials each", plan.cap));
        }
        self.cap = plan.cap;
        if done > 0 {
            self.print(&format!("{done} trials are done already"));
        }
    }

    fn boot(&mut self, start: &BootStart<'_>) {
        let again = if start.twin { " again" } else { "" };
        let booting = format!("booting {}{again}", start.variant);
        let what = match start.block {
            0 => format!("{booting}, to see what it is"),
            block => format!("block {block}/{}  {booting}", self.cap),
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
                "block {}/{}  {} {}  {}  |  {points_done} of {points} points done  |  {}",
                start.block,
                self.cap,
                start.slot.label,
                start.slot.point,
                start.variant,
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
            "block {:>2}/{}  {} {}  {:.2} s  {}{missing}  {points_done}/{points} points done  {}",
            block.block,
            block.cap,
            block.slot.label,
            block.slot.point,
            block.elapsed.as_secs_f64(),
            block.so_far,
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
