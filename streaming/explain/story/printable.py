"""Text that clients have chosen, made safe to show."""


def printable(text: str) -> str:
    """A line with escapes in place of characters that control a terminal or the direction of writing."""
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else f"\\u{ord(one):04x}" for one in text)
