"""When deadlines fire, and from when sessions count.

It may import all of the logic except :mod:`coordinator_logic.step` and the handlers.
"""
