"""A release: its checks, the sdist and the wheel, and the tag; see :mod:`tests.release.__main__`.

It imports nothing of the project, which is installed from the wheel. The test of the wheel uses :mod:`.distributions`.
"""
