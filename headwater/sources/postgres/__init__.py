"""PostgreSQL as a source: a snapshot of its tables, then what its write-ahead log says of them, transaction by transaction."""
