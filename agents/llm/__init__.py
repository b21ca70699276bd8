"""The planner that asks a language model; what it returns is checked like anybody's draft."""
