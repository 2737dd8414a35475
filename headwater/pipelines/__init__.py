"""Whole pipelines in one piece: tables, sources, views and sinks, described in a file or in Python, and how to get there."""
