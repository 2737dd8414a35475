"""State: rows indexed by a key, as immutable values.

``layout``         Arrow columns seen as NumPy arrays
``hashing``        the hash of a row, ours and for ever
``equality``       when two rows are the same row
``consolidation``  equal rows found and merged
``runs``           sorted, consolidated, immutable pieces of an arrangement
``arrangement``    the index the operators see
"""
