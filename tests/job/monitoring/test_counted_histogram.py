"""The histogram that counts many requests at once shows what prometheus_client's own would."""

from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Histogram

from streaming.job.monitoring.counted_histogram import CountedHistogram

BUCKETS = (0.025, 0.5, 1, 300)

values = st.sampled_from([0.0, 0.0125, 0.025, 0.25, 0.5, 0.75, 1.0, 299.5, 300.0, 1000.0])
observations = st.lists(st.tuples(st.sampled_from(["Heartbeat", "JoinGroup"]), values, st.integers(1, 5)))


def samples(registry: CollectorRegistry) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in registry.collect()
        for sample in family.samples
        if not sample.name.endswith("_created")
    }


@given(observations)
def test_it_shows_the_same_samples_as_one_that_counts_one_by_one(added: list[tuple[str, float, int]]) -> None:
    own, other = CollectorRegistry(), CollectorRegistry()
    counted = CountedHistogram("waits", "Waits.", "api", buckets=BUCKETS, registry=own)
    one_by_one = Histogram("waits", "Waits.", ["api"], buckets=BUCKETS, registry=other)
    for api, value, count in added:
        counted.observe(api, value, count)
        for _ in range(count):
            one_by_one.labels(api).observe(value)
    shown, expected = samples(own), samples(other)
    assert shown.keys() == expected.keys()
    assert all(abs(shown[key] - expected[key]) < 1e-6 for key in expected)
