"""Sessions in two worlds that differ in labels only, and everything that can be seen of them.

With a mechanism that ignores the labels, nothing that comes out may differ between the worlds.
"""
