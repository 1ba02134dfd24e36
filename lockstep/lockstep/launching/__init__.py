"""Runs one launch, from the check of its arguments to the report. Start reading at :mod:`.launch`."""
