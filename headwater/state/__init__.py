"""State: rows indexed by a key, as immutable values.

``layout``         Arrow columns seen as NumPy arrays
``columns``        Arrow columns of any size, put together and taken apart
``blocks``         rows laid out one by one, as words
``loops``          the compiled loops over them
``searching``      … that find lines in runs
``merging``        … that make runs one
``sorting``        hashes in order
``parallel``       many rows in pieces, on all cores
``hashing``        the hash of a row, ours and for ever
``equality``       when two rows are the same row
``consolidation``  equal rows found and merged
``runs``           sorted, consolidated, immutable pieces of an arrangement
``probing``        rows looked for in runs
``compaction``     large runs merged in the background
``arrangement``    the index the operators see
"""
