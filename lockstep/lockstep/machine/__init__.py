"""Runs translated code for all lanes of many blocks at once; :mod:`.machine` is where to start."""
