"""The Python worker of the job's executors: its daemon, how it reads and writes Arrow, and which of them is used."""
