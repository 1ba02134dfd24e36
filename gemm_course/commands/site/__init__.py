"""Turns the course into a website: pages of the built notebooks, which need neither Python nor a network.

``pages`` decides which pages there are, ``notebooks`` turns a notebook into a page, ``links`` finds where
every link leads, ``extension`` and ``static`` configure Sphinx, and ``build`` puts them together.
"""
