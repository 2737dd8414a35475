"""What outlives the process: files, the log, manifests, the lease of the one writer."""
