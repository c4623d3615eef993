"""The terminal's view, driven by keys."""

import asyncio
import html
import os
import signal
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest
from textual.pilot import Pilot
from textual.widgets import DataTable, Static
from textual.widgets._header import HeaderTitle

from streaming.contract.output.text import printable
from streaming.embedded.interruption import INTERRUPTED
from streaming.explain.live.columns import COLUMNS, coordinator_line
from streaming.explain.live.readers import NO_JOB, Pulse
from streaming.explain.live.screen import MAX_ROWS, FleetScreen
from tests.contract.output.hostile_texts import HOSTILE, unprintable
from tests.explain.live.given import THREE, Given, row
from tests.support.waiting import LIMIT_SECONDS


def driven(source: Given, story: Callable[[FleetScreen, Pilot[None]], Awaitable[None]], width: int = 160) -> None:
    """Run the screen with this story in a terminal of this width."""

    async def run() -> None:
        screen = FleetScreen(source, lambda group_id: f"about {group_id}")
        async with screen.run_test(size=(width, 24)) as pilot:
            await story(screen, pilot)

    asyncio.run(run())


def shown(screen: FleetScreen) -> list[str]:
    """The group ids in the table, from above."""
    table = screen.query_one(DataTable)
    return [str(table.get_row_at(number)[0]) for number in range(table.row_count)]


def test_the_groups_with_most_rebalances_come_first_and_keys_sort_by_other_columns() -> None:
    async def story(screen: FleetScreen, pilot: Pilot[None]) -> None:
        assert shown(screen) == ["audit", "orders", "billing"]
        await pilot.press("r")
        assert shown(screen) == ["billing", "orders", "audit"]
        # Beyond the last column, the first one follows.
        await pilot.press("s", "s", "s", "s")
        assert shown(screen) == ["audit", "billing", "orders"]
        await pilot.press("s", "s", "s", "s", "s")
        assert shown(screen) == ["orders", "billing", "audit"]

    driven(Given(*THREE), story)


def test_a_filter_shows_groups_whose_name_or_state_has_it() -> None:
    async def story(screen: FleetScreen, pilot: Pilot[None]) -> None:
        await pilot.press("slash", *"IL", "enter")
        assert shown(screen) == ["billing"]
        await pilot.press("slash", "backspace", "backspace", *"stab")
        assert shown(screen) == ["audit", "orders"]

    driven(Given(*THREE), story)


def heads(screen: FleetScreen) -> list[str]:
    """The titles in the table, without the arrow at the column that sorts."""
    return [str(column.label).split(" ▼")[0].split(" ▲")[0] for column in screen.query_one(DataTable).ordered_columns]


def test_a_narrow_terminal_shows_the_important_columns_and_the_one_that_sorts() -> None:
    source = Given(row("billing-europe-payments-card-authorisations-prod-1", rebalances=2))

    async def story(screen: FleetScreen, pilot: Pilot[None]) -> None:
        assert heads(screen) == ["GROUP", "STATE", "MEMBERS", "LAG"]
        assert screen.sub_title.startswith("no room for TYPE, GENERATION/EPOCH, REBALANCES/MIN, ")
        assert screen.sub_title in str(screen.query_one(HeaderTitle).content)
        await pilot.resize_terminal(200, 24)
        await pilot.pause()
        assert heads(screen) == [column.title for column in COLUMNS]
        assert screen.sub_title == ""
        await pilot.resize_terminal(80, 24)
        # What sorts is more important than the number of members.
        await pilot.press(*"ssssss")
        assert heads(screen) == ["GROUP", "STATE", "TYPE", "LAG"]

    driven(source, story, width=80)


def test_the_cursor_stays_at_its_group_when_others_come() -> None:
    source = Given(*THREE)

    async def story(screen: FleetScreen, pilot: Pilot[None]) -> None:
        await pilot.press("down")
        source.given.append(row("new", rebalances=9))
        screen.refresh_rows()
        table = screen.query_one(DataTable)
        assert shown(screen)[table.cursor_row] == "orders"

    driven(source, story)


def test_enter_opens_the_page_of_a_group_and_escape_closes_it() -> None:
    async def story(screen: FleetScreen, pilot: Pilot[None]) -> None:
        await pilot.press("enter")
        await screen.workers.wait_for_complete()
        await pilot.pause()
        assert str(screen.screen.query_one("#description", Static).content) == "about audit"
        screen.refresh_rows()
        await pilot.press("escape")
        assert shown(screen)[0] == "audit"

    driven(Given(*THREE), story)


def test_the_first_line_tells_of_the_coordinator() -> None:
    async def story(screen: FleetScreen, _pilot: Pilot[None]) -> None:
        line = str(screen.query_one("#coordinator", Static).content)
        for part in ("one, process 42", "backlog 1,234", "56 ms", "3 groups, 6 members", "0.5 rebalances/min"):
            assert part in line

    driven(Given(*THREE), story)


def test_a_question_mark_shows_all_keys_and_escape_closes_them() -> None:
    async def story(screen: FleetScreen, pilot: Pilot[None]) -> None:
        await pilot.press("question_mark")
        keys = str(screen.screen.query_one("#keys", Static).content)
        assert all(key in keys for key in ("Enter", "Esc", "Ctrl-C", "quit"))
        await pilot.press("escape", "r")
        assert shown(screen)[0] == "billing"

    driven(Given(*THREE), story)


@pytest.mark.parametrize(("key", "code"), [("q", 0), ("ctrl+c", INTERRUPTED)])
def test_q_quits_and_ctrl_c_quits_as_an_interrupted_command(key: str, code: int) -> None:
    screens: list[FleetScreen] = []

    async def story(screen: FleetScreen, pilot: Pilot[None]) -> None:
        screens.append(screen)
        await pilot.press(key)

    driven(Given(*THREE), story)
    assert (screens[0].return_code or 0) == code


@pytest.mark.parametrize("keys", [("slash", "a"), ("enter",), ("question_mark",)])
def test_ctrl_c_quits_wherever_the_keys_go(keys: tuple[str, ...]) -> None:
    async def story(screen: FleetScreen, pilot: Pilot[None]) -> None:
        await pilot.press(*keys, "ctrl+c")
        assert screen.return_code == INTERRUPTED

    driven(Given(*THREE), story)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_screen_as_ctrl_c_does(number: signal.Signals) -> None:
    async def story(screen: FleetScreen, _pilot: Pilot[None]) -> None:
        os.kill(os.getpid(), number)
        # The loop calls the handler in one of its next turns.
        async with asyncio.timeout(LIMIT_SECONDS):
            while screen.return_code is None:
                await asyncio.sleep(0)
        assert screen.return_code == INTERRUPTED

    driven(Given(*THREE), story)


def test_without_a_job_one_sentence_says_so() -> None:
    problem = "topic 'group-coordinators' does not exist"
    assert coordinator_line(Pulse(problem=problem), [], is_complete=False) == problem
    assert coordinator_line(Pulse(), [], is_complete=False) == "reading the coordinator's topics ..."
    line = coordinator_line(Pulse(problem=NO_JOB), [], is_complete=True)
    assert line == f"{NO_JOB} | 0 groups, 0 members | 0.0 rebalances/min"
    one = msgspec.structs.replace(row("billing"), members=1)
    assert "1 group, 1 member |" in coordinator_line(Given().pulse(), [one], is_complete=True)


def test_a_refresh_draws_only_what_has_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    source, drawn = Given(*THREE), Counter[str]()
    for name in ("add_row", "update_cell"):
        original = getattr(DataTable, name)

        def counting(*arguments: Any, original: Any = original, name: str = name, **options: Any) -> Any:
            drawn[name] += 1
            return original(*arguments, **options)

        monkeypatch.setattr(DataTable, name, counting)

    async def story(screen: FleetScreen, pilot: Pilot[None]) -> None:
        drawn.clear()
        screen.refresh_rows()
        assert drawn == {}
        source.given[1] = msgspec.structs.replace(source.given[1], members=7)
        screen.refresh_rows()
        assert drawn == {"update_cell": 1}
        source.given.append(row("new", rebalances=9))
        screen.refresh_rows()
        assert drawn == {"update_cell": 1, "add_row": 4}

    driven(source, story)


def test_of_many_groups_the_first_ones_are_shown() -> None:
    async def story(screen: FleetScreen, _pilot: Pilot[None]) -> None:
        assert len(shown(screen)) == MAX_ROWS
        assert f"the first {MAX_ROWS} of {MAX_ROWS + 1}" in str(screen.query_one("#coordinator", Static).content)

    driven(Given(*(row(f"group-{number}") for number in range(MAX_ROWS + 1))), story)


def test_a_refresh_while_the_program_ends_does_nothing() -> None:
    async def story(screen: FleetScreen, _pilot: Pilot[None]) -> None:
        await screen.query_one(DataTable).remove()
        screen.refresh_if_shown()

    driven(Given(*THREE), story)


def test_no_control_characters_and_no_markup_of_clients_reach_the_terminal() -> None:
    source = Given(msgspec.structs.replace(row(HOSTILE, state=HOSTILE), reason=HOSTILE, group_type=HOSTILE))
    source.job = msgspec.structs.replace(source.job, host=HOSTILE)

    async def story(screen: FleetScreen, pilot: Pilot[None]) -> None:
        table = screen.query_one(DataTable)
        cells = [str(cell) for cell in table.get_row_at(0)]
        assert cells.count(printable(HOSTILE)) == 4
        line = str(screen.query_one("#coordinator", Static).content)
        assert printable(HOSTILE) in line
        await pilot.press("enter")
        await screen.workers.wait_for_complete()
        await pilot.pause()
        page = screen.screen
        assert page.title == printable(HOSTILE)
        texts = [
            *cells,
            line,
            str(page.query_one("#description", Static).content),
            html.unescape(screen.export_screenshot()).replace("\xa0", " "),
        ]
        assert [bad for text in texts for bad in unprintable(text)] == []

    driven(source, story, width=1_000)
