"""The incremental operators: one a file, each a pure function of state and deltas on one shard."""
