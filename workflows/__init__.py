"""Workflow file -> plan -> run -> report."""
