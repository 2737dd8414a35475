"""Runs epochs and commits them."""
