"""Requests that a group refused, and to what they lost.

A refusal changes nothing, so the journal has no entry. But the journal has the group as it was at the time of each
request that the topic of the requests still holds: the request is handled again by that group, and the answer is an
error. Pure but for :mod:`streaming.explain.refusals.reading`.
"""
