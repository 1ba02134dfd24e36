"""Grades assignments with nbgrader: restores what a submission changed, and confines what it runs."""
