"""Small local models, checked by sha256 and cached."""
