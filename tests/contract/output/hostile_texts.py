"""Texts as a client may choose them, that would do harm where they are shown."""

from hypothesis import strategies as st

PIECES = (
    "[/]",
    "[bold]",
    "[link=http://evil.example]here[/link]",
    ":boom:",
    "\x1b[2J",
    "\x1b]8;;http://evil.example\x07",
    "\x9b31m",
    "\u202e",
    "\u2066",
    "\u2028",
    "\r",
    "\n",
    "\t",
    "\x7f",
    "\U000e0041",
    "<script>",
    "</script>",
    "<!--",
    "&lt;",
    '"',
    "'",
    "=1+1",
    "@SUM(1)",
    "-1",
    "\\u001b",
    "{}",
    "%s",
)

HOSTILE = "=[/][bold]:boom:\x1b[2J\x9b31m\u202e\u2066\r\n\t\x7f\U000e0041</script><script>\"'{}%s"
"""All kinds in one, without NUL, which no argument of a command can have."""

hostile_texts = st.lists(st.sampled_from(PIECES) | st.text(max_size=3), min_size=1, max_size=6).map("".join)


def unprintable(output: str) -> list[str]:
    """The lines of an output that have characters which control a terminal or the direction of writing."""
    return [line for line in output.split("\n") if not line.isprintable()]
