"""The live views and the stories as a small web server, read only.

:mod:`~streaming.explain.ui.source` reads, :mod:`~streaming.explain.ui.routes` chooses the page of a request,
:mod:`~streaming.explain.ui.fleet_pages` and :mod:`~streaming.explain.ui.group_page` make pages of what was read,
:mod:`~streaming.explain.ui.guard` refuses requests, and :mod:`~streaming.explain.ui.server` serves.
"""
