"""What earlier releases have written: a checkpoint, the records of their topics and a backup, each in an archive.

``keep.py`` makes an archive with the code of a commit; the tests go on with it.
"""
