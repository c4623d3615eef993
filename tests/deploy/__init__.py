"""Tests of deploy/: Prometheus' alert rules and Grafana's dashboards."""
