"""The live views: the fleet, and the screen that shows it."""
