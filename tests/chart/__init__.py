"""Tests of deploy/chart: what Helm makes of it, against Kubernetes' schemas, the operators' and the command line."""
