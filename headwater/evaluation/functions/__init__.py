"""Families of Spark functions with a verified translation to DuckDB SQL; importing a family registers its rules."""
