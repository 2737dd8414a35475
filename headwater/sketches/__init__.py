"""Provenance sketches: which ranges of a table a query needs, kept up to date as live views, so that others are skipped."""
