"""Measurements of what an outage costs: backlogs, take-overs, checkpoints that are written again."""
