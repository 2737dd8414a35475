"""Queries in: Spark parses, resolves and optimises; what it made of a query is read into the algebra."""
