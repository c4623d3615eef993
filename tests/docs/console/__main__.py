"""Play the console sessions and write their output into the pages; the ports 9092 and 19092 must be free."""

import tempfile
from pathlib import Path

from tests.docs.console.pages import PAGES
from tests.docs.console.playing import Player
from tests.docs.console.sessions import blocks, with_output


def main() -> None:
    """Write the pages of docs/console."""
    with tempfile.TemporaryDirectory() as folder:
        replaced = {"/tmp/coordinator": f"{folder}/state"}
        with Player(Path(folder) / "checkout", replaced, {}) as player:
            for page in PAGES:
                text = page.read_text()
                played = [player.play(block) for block in blocks(text)]
                page.write_text(with_output(text, iter(played)))
                print(f"wrote {page}", flush=True)


if __name__ == "__main__":
    main()
