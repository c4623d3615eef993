"""The commands about the offsets that groups have committed: list, history, reset, restore, undo, export, import."""
