"""Mechanisms against analysts.

Kernels, sweeps, calibration and figures, on local processes or a cluster.

This room is still empty.
"""

__all__: list[str] = []
