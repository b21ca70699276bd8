"""Natural language in, a reviewed workflow out (LangGraph)."""
