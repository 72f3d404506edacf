"""Commands for participants: they talk to a server over HTTP."""
