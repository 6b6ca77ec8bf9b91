"""Adapters for other tools; each is imported only when it is used."""
