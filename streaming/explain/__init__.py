"""What the journal tells people about groups, beside the protocol and never in its way.

It may import the job, the clients and the contract; the command line imports it.
"""
