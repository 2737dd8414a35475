"""From the algebra to a dataflow: what is linear, what has state, which operator fits, and who shares state with whom."""
