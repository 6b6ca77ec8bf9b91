"""Parsing and printing; everything else is a library call."""
