"""Sketches of a session: made, found for a query, and used, so that Spark skips what the query does not need."""
