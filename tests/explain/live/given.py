"""Groups for the tests of what shows them."""

from streaming.explain.live.fleet import FleetRow
from streaming.explain.live.readers import Pulse
from streaming.job.election.announcements import ActiveJob


def row(group_id: str, *, rebalances: int = 0, lag: int | None = None, state: str = "Stable") -> FleetRow:
    return FleetRow(
        group_id=group_id,
        state=state,
        group_type="classic",
        protocol_type="consumer",
        generation=1,
        members=2,
        offsets=0,
        rebalances=rebalances,
        rebalances_a_minute=rebalances / 10,
        rebalancing_share=0,
        since=None,
        reason=None,
        lag=lag,
    )


class Given:
    """Rows that do not change by themselves."""

    is_complete = True

    def __init__(self, *rows: FleetRow) -> None:
        self.given = list(rows)
        self.job = ActiveJob(epoch=3, host="one", process_id=42, started_at=0, version="0")

    def rows(self) -> list[FleetRow]:
        return list(self.given)

    def pulse(self) -> Pulse:
        return Pulse(active=self.job, backlog=1_234, answer_ms=56.4)


THREE = (row("billing", lag=5, state="Empty"), row("audit", rebalances=4), row("orders", rebalances=1, lag=70))
