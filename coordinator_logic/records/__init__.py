"""The records that every group has, the journal's and the directory's entries, and the only code that applies records.

A handler decides and returns records; :func:`apply` decides nothing. It alone changes offsets and configuration, and
has the part of a group apply the records of its type. So folding a group's journal gives exactly those fields. The room
imports the group and the messages.
"""

from coordinator_logic.records.applying import *
from coordinator_logic.records.definitions import *
