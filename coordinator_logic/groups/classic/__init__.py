"""Classic groups: members that join together, and a leader among them that assigns.

May import the rest of the logic except the other types and the handlers.
"""
