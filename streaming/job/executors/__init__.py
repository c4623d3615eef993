"""What executors on other hosts need of the job: its code and its packages travel with it.

May import the job's session and what is below it.
"""
