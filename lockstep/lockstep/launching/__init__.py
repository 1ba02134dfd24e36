"""One launch from the check of its arguments to the report; :mod:`.launch` is where to start."""
