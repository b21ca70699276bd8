"""Dynamic data-model interaction on LLaMA-Factory: selection, and later mixture and reweighting."""
