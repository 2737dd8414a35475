"""Where answers go: Spark's readers, files, tables of others, functions."""
