"""Each deliberate fault in the logic of consumer groups is caught."""

import pytest

from tests.logic.groups.consumer.faults import FAULTS, plant


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(FAULTS[name], monkeypatch)
    with pytest.raises(AssertionError):
        FAULTS[name].check()


def test_the_checks_find_nothing_without_a_fault() -> None:
    """The searches and tests pass by themselves; this shows that planting one leaves nothing behind."""
    fault = FAULTS["any member epoch is accepted"]
    with pytest.MonkeyPatch.context() as patched:
        plant(fault, patched)
    fault.check()
