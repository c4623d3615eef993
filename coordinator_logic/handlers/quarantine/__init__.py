"""The APIs for quarantined groups, one file each: what any other group answers them.

A quarantined group answers them in :mod:`coordinator_logic.quarantine`, because only its stored bytes are left. May
import what the other handlers may.
"""
