//! Exports of the first version of the format.

use super::*;

/// Exports written with the first version of the format, once by chunks and once by clusters. They never change, so
/// that later versions keep reading them.
const FIXTURES: [(&str, bool); 2] = [("export_1_chunks.objects", false), ("export_1_clusters.objects", true)];

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures").join(name)
}

/// The contents of both. They never change; a later format gets its own world.
fn world_of_format_1() -> TestStore {
    let block = |x, y, kind| ([x, y, 3], 0, kind, vec![1, 2, 3, x as u8]);
    let spec = Spec {
        is_sparse: false,
        columns: BTreeSet::from([(0, 0), (-1, 0)]),
        edits: vec![block(3, 5, 2), block(3, -5, 4), block(-4, 60, 0), ([3, 5, 3], 1, 1, vec![0; 4])],
        later: vec![block(7, 5, 3)],
        entities: vec![[3, 6, 3]],
        ticks: vec![[3, 5, 3]],
        tiers: vec![0, 1],
        kept: vec![(0, [7, 2, 3]), (1, [3, 2, 3]), (2, [-4, 2, 3])],
    };
    spec.make(&[0, 1, 2, 3, 4]).0
}

/// Promise, exports: The first line of an export names its format, and files of version 1 stay readable.
/// Promise, exports: A record in an export begins with its format, and trailing bytes are an error.
/// Promise, exports: A column summary in an export has the documented bytes.
#[test]
fn exports_of_the_first_format_stay_readable() {
    // These exports say nothing of new columns.
    let expected = Contents { new: BTreeSet::new(), ..contents(&world_of_format_1(), NAME) };
    assert_eq!((expected.columns.len(), expected.entities.len(), expected.kept.len()), (2, 1, 3));
    for (name, _) in FIXTURES {
        let new = TestStore::default();
        let report = import(&new, &fixture(name), &ImportOptions::default()).unwrap();
        assert_eq!((report.columns, report.lost), (2, Listed::default()));
        assert_eq!(contents(&new, NAME), expected);
    }
}

/// An export that the code of an earlier commit wrote, in the first version of the format: of a sparse dimension.
const EARLIER: &str = "export_1_sparse.objects";

fn sparse_world_of_format_1() -> TestStore {
    let block = |x, y, kind| ([x, y, 3], 0, kind, vec![1, 2, 3, x as u8]);
    let spec = Spec {
        is_sparse: true,
        columns: BTreeSet::from([(0, 0), (-1, 0), (5, -7)]),
        edits: vec![block(3, 5, 2), block(3, -5, 4), block(-4, 60, 0), ([3, 5, 3], 1, 1, vec![0; 4])],
        later: vec![block(7, 5, 3)],
        entities: vec![[3, 6, 3], [-4, 61, 3]],
        ticks: vec![[3, 5, 3]],
        tiers: vec![0, 1, 2],
        kept: vec![(0, [7, 2, 3]), (1, [3, 2, 3]), (2, [-4, 2, 3])],
    };
    spec.make(&[0, 1, 2, 3, 4]).0
}

/// Promise, exports: An export of an earlier version of this crate can be imported in full.
#[test]
fn an_export_of_an_earlier_version_is_imported_in_full() {
    let expected = Contents { new: BTreeSet::new(), ..contents(&sparse_world_of_format_1(), NAME) };
    let new = TestStore::default();
    let report = import(&new, &fixture(EARLIER), &ImportOptions::default()).unwrap();
    assert_eq!((report.columns, report.lost), (3, Listed::default()));
    assert_eq!(contents(&new, NAME), expected);
}

/// Makes the fixtures if `TERRANE_WRITE_FIXTURE=1` is set, only until the format is released.
#[test]
fn fixtures_of_new_exports_can_be_made() {
    let folder = tempfile::tempdir().unwrap();
    let (store, sparse) = (world_of_format_1(), sparse_world_of_format_1());
    let fixtures = FIXTURES.map(|(name, packs)| (name, packs, &store));
    for (name, packs, store) in fixtures.into_iter().chain([(EARLIER, false, &sparse)]) {
        let path = folder.path().join(name);
        export(store, &path, &ExportOptions { packs: Some(packs), ..ExportOptions::default() });
        assert!(objects(&path)[0].keys().any(|key| key.starts_with("cluster/")) == packs);
        if std::env::var_os("TERRANE_WRITE_FIXTURE").is_some() {
            fs::copy(&path, fixture(name)).unwrap();
        }
    }
}
