"""Runs translated code for all lanes of many blocks at once. Start reading at :mod:`.machine`."""
