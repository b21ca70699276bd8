"""The LLM client: cache, limiter, retries, budget."""
