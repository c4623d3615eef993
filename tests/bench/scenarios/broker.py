"""A broker's own coordinator under the same load, and the load generator without any coordinator."""

from tests.bench import figures
from tests.bench.events import Events, echo
from tests.bench.figures import Figures, Formation, Heartbeats
from tests.bench.scenarios.formation import protocol_delay_ms
from tests.bench.scenarios.loads import FULL_RATE, STEADY_RATE, Bench, Load, group_names
from tests.bench.systems import brokers
from tests.support.topics import create_topic

GENERATOR_SECONDS = 5.0


def generator_alone(bench: Bench) -> Heartbeats:
    """Measure the load generator on a topic whose records are their own responses: no coordinator takes part."""
    bench.report(f"the load generator alone: {FULL_RATE:,} records/s")
    topic = "bench-echo"
    create_topic(bench.broker.bootstrap_servers, topic)
    with Events(bench.broker.bootstrap_servers, topic, topic) as events:
        load = Load(FULL_RATE, 0, 0, 1.0, GENERATOR_SECONDS)
        return load.measure(lambda times: events.send_on_schedule([echo()], times), bench.broker.pid)


def broker_coordinator(bench: Bench) -> Figures:
    """Measure the group coordinator of the broker that the whole benchmark runs on."""
    scale, servers, name = bench.scale, bench.broker.bootstrap_servers, figures.BROKER
    formations = []
    # A new broker creates its offsets topic for its first group.
    bench.report(f"{name}: forming a first group, which is not counted")
    brokers.form_groups(servers, ["broker-first"], 1)
    for members, groups in scale.formations:
        bench.report(f"{name}: forming {groups} group(s) of {members}")
        delay = protocol_delay_ms(members)
        _, seconds = brokers.form_groups(servers, group_names(f"broker-{members}", groups), members)
        above = [round(1000 * each - delay, 1) for each in seconds]
        formations.append(Formation(members=members, delay_ms=delay, above_delay_ms=above))
    groups = scale.steady_groups
    bench.report(f"{name}: forming {groups:,} groups")
    joined, _ = brokers.form_groups(servers, group_names("broker-steady", groups), 1)
    loads = []
    for rate in (STEADY_RATE, FULL_RATE):
        load = Load(rate, groups, 1, scale.short_warm_up_seconds, scale.short_seconds)
        bench.report(f"{name}: {load}")
        measured = load.measure(lambda times: brokers.send_on_schedule(servers, joined, times), bench.broker.pid)
        loads.append(measured)
    return Figures(steady=loads[0], full=loads[1], formations=formations)
