"""Holds the commands around the lessons: open the course, examine this machine, update, reset a notebook."""
