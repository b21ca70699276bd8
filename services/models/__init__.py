"""Small local models, checked by sha256 and cached."""

from datamill.services.models.resolve import LocalModel, list_models, resolve_model

__all__ = ["LocalModel", "list_models", "resolve_model"]
