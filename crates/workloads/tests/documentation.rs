//! Every workload has a page, and the page names all its parameters and metrics.

use std::fs;
use std::path::Path;

#[test]
fn every_workload_has_a_page_that_names_what_it_has() {
    let pages = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/workloads");
    for workload in workloads::all() {
        let description = workload.describe();
        // Those after will-it-scale share a page.
        let shared = description.name.starts_with("scale-");
        let path = pages.join(if shared { "scale.md".into() } else { format!("{}.md", description.name) });
        let page = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let parameters = description.parameters.iter().map(|parameter| &parameter.name);
        let metrics = description.metrics.iter().map(|metric| &metric.name);
        for name in parameters.chain(metrics).chain(shared.then_some(&description.name)) {
            assert!(page.contains(&format!("`{name}`")), "{} does not name `{name}`", path.display());
        }
    }
}
