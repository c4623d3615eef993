"""What ``group-coordinator doctor`` checks, one module for each part of an installation.

A check may import every room; what an extra brings is imported only once the extra is known to be installed.
"""
