//! Numbers that findings keep across rounds, so that people can talk about them: pure.

use std::collections::BTreeSet;

use super::Finding;

/// The number that a finding at `place` (counted from 0) of its review is shown with. Early findings
/// and those of other tools have none of their own; their place stands for it.
pub fn shown(finding: &Finding, place: usize) -> u32 {
    let place = u32::try_from(place).unwrap_or(u32::MAX);
    finding.number.unwrap_or(place.saturating_add(1))
}

/// Numbers `findings`, a new review. One that repeats a finding of `earlier` (the reviews before it,
/// newest first) keeps that one's number: the engine's word for it counts when there is such a number,
/// else equal path, rule and title, the nearest line first. Every other finding gets a number above
/// `last` and above all of `earlier`. Tells the greatest number that was ever given out.
pub fn assign(findings: &mut [Finding], earlier: &[Vec<Finding>], last: u32) -> u32 {
    let known: Vec<(u32, &Finding)> = earlier
        .iter()
        .flat_map(|review| review.iter().enumerate())
        .map(|(place, finding)| (shown(finding, place), finding))
        .collect();
    let mut last = known.iter().map(|(number, _)| *number).fold(last, u32::max);
    let mut used = BTreeSet::new();
    for finding in findings.iter_mut() {
        let repeats = |number: &u32| known.iter().any(|(known, _)| known == number);
        finding.number = finding
            .number
            .filter(repeats)
            .filter(|number| used.insert(*number));
    }
    for finding in findings.iter_mut().filter(|one| one.number.is_none()) {
        let same = known
            .iter()
            .filter(|(number, other)| !used.contains(number) && is_same(finding, other))
            .min_by_key(|(_, other)| distance(finding.line, other.line));
        let number = match same {
            Some((number, _)) => *number,
            None => {
                last = last.saturating_add(1);
                last
            }
        };
        used.insert(number);
        finding.number = Some(number);
    }
    last
}

/// Findings of `earlier` (newest review first) that `findings` do not repeat, each once and as it was
/// said last, by number.
pub fn gone<'a>(findings: &[Finding], earlier: &'a [Vec<Finding>]) -> Vec<(u32, &'a Finding)> {
    let mut seen: BTreeSet<u32> = findings
        .iter()
        .enumerate()
        .map(|(place, finding)| shown(finding, place))
        .collect();
    let mut gone = Vec::new();
    for review in earlier {
        for (place, finding) in review.iter().enumerate() {
            let number = shown(finding, place);
            if seen.insert(number) {
                gone.push((number, finding));
            }
        }
    }
    gone.sort_by_key(|(number, _)| *number);
    gone
}

fn is_same(one: &Finding, other: &Finding) -> bool {
    one.path == other.path
        && one.rule == other.rule
        && one.title.to_lowercase() == other.title.to_lowercase()
}

fn distance(one: Option<u32>, other: Option<u32>) -> u32 {
    match (one, other) {
        (Some(one), Some(other)) => one.abs_diff(other),
        (None, None) => 0,
        _ => u32::MAX,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::Severity;
    use super::*;

    fn finding(path: &str, line: u32, title: &str, number: Option<u32>) -> Finding {
        Finding {
            path: path.into(),
            line: Some(line),
            severity: Severity::Minor,
            title: title.into(),
            body: String::new(),
            number,
            confidence: None,
            rule: None,
        }
    }

    fn numbers(findings: &[Finding]) -> Vec<u32> {
        findings.iter().map(|one| one.number.unwrap()).collect()
    }

    #[test]
    fn a_first_review_counts_from_one_whatever_the_engine_says() {
        let mut new = [finding("a", 1, "x", Some(7)), finding("b", 1, "y", None)];
        assert_eq!(assign(&mut new, &[], 0), 2);
        assert_eq!(numbers(&new), [1, 2]);
    }

    #[test]
    fn a_repeated_finding_keeps_its_number_and_a_new_one_gets_an_unused_one() {
        let first = vec![
            finding("a", 1, "x", Some(1)),
            finding("a", 50, "x", Some(2)),
        ];
        let mut second = [
            finding("c", 9, "moved, says the engine", Some(2)),
            finding("a", 60, "X", None),
            finding("d", 1, "new", Some(9)),
        ];
        assert_eq!(assign(&mut second, &[first], 2), 3);
        assert_eq!(numbers(&second), [2, 1, 3]);
    }

    #[test]
    fn of_equal_findings_the_nearest_line_is_the_same_one() {
        let first = vec![
            finding("a", 10, "x", Some(1)),
            finding("a", 50, "x", Some(2)),
        ];
        let mut second = [finding("a", 52, "x", None), finding("a", 12, "x", None)];
        assign(&mut second, &[first], 2);
        assert_eq!(numbers(&second), [2, 1]);
    }

    #[test]
    fn a_number_comes_back_with_its_finding_and_is_never_given_to_another() {
        let reviews = [vec![], vec![finding("a", 1, "x", Some(1))]];
        let mut third = [finding("a", 1, "x", None), finding("b", 1, "y", None)];
        assert_eq!(assign(&mut third, &reviews, 4), 5);
        assert_eq!(numbers(&third), [1, 5], "2 to 4 were purged");
    }

    #[test]
    fn what_is_gone_is_told_once_as_it_was_said_last() {
        let earlier = [
            vec![finding("a", 2, "x again", Some(1))],
            vec![
                finding("a", 1, "x", Some(1)),
                finding("b", 1, "y", Some(2)),
                finding("c", 1, "z", Some(3)),
            ],
        ];
        let now = [finding("b", 1, "y", Some(2))];
        let gone = gone(&now, &earlier);
        let told: Vec<_> = gone.iter().map(|(n, f)| (*n, f.title.as_str())).collect();
        assert_eq!(told, [(1, "x again"), (3, "z")]);
    }

    fn some_findings() -> impl Strategy<Value = Vec<Finding>> {
        let one = ("[ab]", 1..9_u32, "[xy]", proptest::option::of(0..9_u32));
        let one = one.prop_map(|(path, line, title, number)| finding(&path, line, &title, number));
        proptest::collection::vec(one, 0..6)
    }

    proptest! {
        #[test]
        fn numbers_are_distinct_and_new_ones_were_never_used(
            rounds in proptest::collection::vec(some_findings(), 1..6), purged in 0..20_u32,
        ) {
            let (mut earlier, mut last): (Vec<Vec<Finding>>, u32) = (Vec::new(), purged);
            for mut round in rounds {
                let known: BTreeSet<u32> = earlier.iter().flatten().filter_map(|f| f.number).collect();
                let next = assign(&mut round, &earlier, last);
                let given: BTreeSet<u32> = round.iter().filter_map(|f| f.number).collect();
                prop_assert_eq!(given.len(), round.len());
                prop_assert!(given.iter().all(|n| known.contains(n) || (*n > last && *n <= next)));
                last = next;
                earlier.insert(0, round);
            }
        }
    }
}
