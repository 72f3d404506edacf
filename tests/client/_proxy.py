"""A proxy that breaks connections as it is told to."""
