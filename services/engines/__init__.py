"""Engines: functions over Arrow batches, never operators."""
