"""The coordinator's groups, rebalances, journal and requests as Spark views, as of any time.

    from streaming.explain.tables import open_tables

    with open_tables("localhost:9092", checkpoint="/var/lib/coordinator") as tables:
        tables.sql("select groupId, state, members from groups").show()
        tables.at("2h").sql("select * from offsets where groupId = 'billing'").show()

The room may import what :mod:`streaming.explain` may, and the room of the rows. It needs the extra ``job``.
"""

from streaming.explain.tables.sessions import open_tables
from streaming.explain.tables.tables import TABLES, Sources, Tables

__all__ = ["TABLES", "Sources", "Tables", "open_tables"]
