use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::serialization::{Deserializer, Serializer, V2Serializer};
use thiserror::Error;

/// A log-bucket histogram of whole numbers (nanoseconds, as a rule): relative error under 0.1 %, no ceiling, exact
/// when merged.
#[derive(Debug, Clone, PartialEq)]
pub struct Histogram(hdrhistogram::Histogram<u64>);

/// Why a histogram could not be written or read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("histogram: {0}")]
pub struct HistogramError(String);

impl Default for Histogram {
    fn default() -> Self {
        Histogram::new()
    }
}

impl Histogram {
    /// An empty histogram.
    #[allow(clippy::expect_used)]
    pub fn new() -> Histogram {
        // Three significant digits are within the limits of the constructor, which knows no other failure.
        let mut histogram = hdrhistogram::Histogram::new(3).expect("3 digits are legal");
        histogram.auto(true);
        Histogram(histogram)
    }

    /// An empty histogram that need not grow, which takes time, before a value exceeds `highest`.
    pub fn reaching(highest: u64) -> Histogram {
        match hdrhistogram::Histogram::new_with_max(highest.max(2), 3) {
            Ok(mut histogram) => {
                histogram.auto(true);
                Histogram(histogram)
            }
            // Three significant digits and a highest value from 2 are legal.
            Err(_) => Histogram::new(),
        }
    }

    /// Counts `value` once.
    #[inline]
    pub fn record(&mut self, value: u64) {
        // A histogram that resizes itself takes every u64.
        let _ = self.0.record(value);
    }

    /// Adds every count of `other`.
    pub fn merge(&mut self, other: &Histogram) {
        // As above: it resizes itself.
        let _ = self.0.add(&other.0);
    }

    /// How many values were counted.
    pub fn len(&self) -> u64 {
        self.0.len()
    }

    /// Whether nothing was counted.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The value below or at which `percent` of the counted values lie; `None` when nothing was counted.
    pub fn percentile(&self, percent: f64) -> Option<u64> {
        (!self.is_empty()).then(|| self.0.value_at_percentile(percent))
    }

    /// The smallest and largest counted value, to the precision of the buckets.
    pub fn range(&self) -> Option<(u64, u64)> {
        (!self.is_empty()).then(|| (self.0.min(), self.0.max()))
    }

    /// The written form: hdrhistogram's V2, base64.
    ///
    /// # Errors
    /// When the serialiser refuses it.
    pub fn to_text(&self) -> Result<String, HistogramError> {
        let mut bytes = Vec::new();
        V2Serializer::new()
            .serialize(&self.0, &mut bytes)
            .map_err(|error| HistogramError(format!("{error:?}")))?;
        Ok(STANDARD.encode(bytes))
    }

    /// Reads the written form.
    ///
    /// # Errors
    /// When the text is not one.
    pub fn from_text(text: &str) -> Result<Histogram, HistogramError> {
        let bytes = STANDARD.decode(text).map_err(|error| HistogramError(error.to_string()))?;
        let histogram = Deserializer::new()
            .deserialize(&mut bytes.as_slice())
            .map_err(|error| HistogramError(format!("{error:?}")))?;
        Ok(Histogram(histogram))
    }
}
