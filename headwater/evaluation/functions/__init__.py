"""Families of Spark functions with a verified translation to DuckDB SQL; importing the package registers them all."""

from headwater.evaluation.functions import arithmetic, casts, collections, comparison, conditions, dates, strings, timestamps

__all__ = ["arithmetic", "casts", "collections", "comparison", "conditions", "dates", "strings", "timestamps"]
