use crate::Options;
use crate::document::Block;
use analysis::Analysis;
pub(crate) fn print(_blocks: &[Block], _analysis: &Analysis, _options: &Options<'_>) -> String {
    String::new()
}
