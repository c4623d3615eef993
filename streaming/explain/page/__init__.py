"""A story as one self-contained page, and as a trace: members by time, what they owned, and each rebalance.

:mod:`~streaming.explain.page.lanes` folds a group's entries into one lane for each member;
:mod:`~streaming.explain.page.data` and :mod:`~streaming.explain.page.writing` make the page of story and lanes,
:mod:`~streaming.explain.page.trace` the trace. Needs neither Spark nor a broker.
"""
