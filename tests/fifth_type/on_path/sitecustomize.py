"""Python imports this at the start of each process whose PYTHONPATH names the folder: the type is registered in it."""

from coordinator_logic.groups import register
from tests.fifth_type.workers import WorkerType

register(WorkerType())
