"""The cost of a batch grows with its requests, not with their square.

Each scenario runs with two sizes in one process. The times are the least of several runs, in CPU time of this process.
Quadratic code takes sixteen times as long for four times the size, linear code four times; the bound lies between.
"""
