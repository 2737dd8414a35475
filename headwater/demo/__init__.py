"""The tour behind `make demo`: a small shop, five live views of it, a minute of changes, and Spark as the judge."""
