"""Processes that ask a guard, to be killed or forked meanwhile."""
