"""What outlives the process: files, the log, manifests, catalogs as JSON, and the lease of the one writer."""
