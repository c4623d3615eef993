"""The terminal's view, driven by keys."""

import asyncio
import html
from collections.abc import Awaitable, Callable

import msgspec
from textual.pilot import Pilot
from textual.widgets import DataTable, Static

from streaming.contract.output.text import printable
from streaming.explain.live.screen import MAX_ROWS, FleetScreen
from tests.contract.output.hostile_texts import HOSTILE, unprintable
from tests.explain.live.given import THREE, Given, row


def driven(source: Given, story: Callable[[FleetScreen, Pilot[None]], Awaitable[None]]) -> None:
    """Run the screen with this story."""

    async def run() -> None:
        screen = FleetScreen(source, lambda group_id: f"about {group_id}")
        async with screen.run_test() as pilot:
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

    driven(source, story)
