"""The one place that knows LLaMA-Factory."""
