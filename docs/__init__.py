"""The documents, and the modules that generate parts of them.

A module here may import the logic and the contract, which the generated parts describe.
"""
