"""Damaged and hostile files, and programs that read them with little memory and time."""
