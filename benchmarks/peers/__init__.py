"""The same data and changes through other engines that install from PyPI, each in an environment of its own.

Optional: `make bench-peers`. A peer is a script `<name>_peer.py` that takes the folder of a scenario and the name of a view,
and prints what it measured as one line of JSON.
"""
