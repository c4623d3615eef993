"""The story of a group, told from its journal: why each rebalance began, how long it took, and who moved.

:mod:`~streaming.explain.story.model` is what is told; :class:`~streaming.explain.story.telling.StoryTeller` tells it
from a group's entries, without Spark and without a broker; :mod:`~streaming.explain.story.words` puts it in words.
"""
