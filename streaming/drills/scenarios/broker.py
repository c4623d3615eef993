"""The broker is stopped for some seconds."""

from streaming.drills.reports.verdict import RecoveryObjectives
from streaming.drills.stage import Scenario, Stage

AWAY_SECONDS = 8.0


def play(stage: Stage) -> None:
    """Stop the broker, and start it again later."""
    broker = stage.coordinator.broker
    stage.fault("the broker is stopped")
    broker.stop()
    stage.watch_for(AWAY_SECONDS, "the broker is away")
    stage.repair("the broker is started again")
    broker.start()


SCENARIOS = (
    Scenario(
        drill="broker",
        title="The broker is away",
        what=f"The only broker is stopped for {AWAY_SECONDS:g} s. The job stays up, and continues when it is back.",
        objectives=RecoveryObjectives(first_answer_seconds=60),
        play=play,
    ),
)
