"""Measurements of a model on rows that leave no trace in the model, the optimizer or any random state."""
