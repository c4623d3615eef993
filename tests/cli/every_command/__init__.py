"""Every command with help, with nothing, with wrong values, piped and interrupted."""
