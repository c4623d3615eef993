"""Jobs that are broken on purpose: the campaigns must find out. ``--broken NAME`` breaks every job of a campaign.

The variable ``CHAOS_BROKEN`` names a defect. `sitecustomize` plants it in each of the job's Python processes, the
driver's and the workers', because Python imports that module at its start from the first folder of PYTHONPATH.
"""
