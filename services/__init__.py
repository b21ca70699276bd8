"""What sits at the other end of a wire or has a lifetime: engines, storage, readers, models, the LLM client."""
