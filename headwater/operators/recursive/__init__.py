"""Recursion row by row, with what each row is derived from: the operators of a distributed query, over logical shards.

An *update* is a row, its annotation, and the place where it is. Rows are tuples of Python values, for an annotation is a
Boolean function, or a derivation, of its own; what is computed of rows is computed for many of them at once.
"""
