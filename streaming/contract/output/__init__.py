"""Where texts leave the process: everything that is printed or logged goes through this room.

Clients choose group ids, member ids, client ids, hosts, metadata and reasons, and so parts of error texts. Each module
makes such a text harmless for one kind of reader: :mod:`~streaming.contract.output.terminal` and
:mod:`~streaming.contract.output.plain` for terminals, :mod:`~streaming.contract.output.logs` for logs,
:mod:`~streaming.contract.output.csv_cells` for spreadsheets, :mod:`~streaming.contract.output.text` for JSON, HTML and
the labels of metrics. A structure test finds what goes around the room. Only ``terminal`` imports rich.
"""
