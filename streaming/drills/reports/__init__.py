"""What a recording says: figures, what is expected of them, and the report as JSON and as a page with pictures.

Pure but for the names and versions of the machine. Of the drills, its modules may import the recording.
"""
