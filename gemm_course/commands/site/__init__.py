"""The course as a website: pages made from the built notebooks, which need neither Python nor a network.

``pages`` says which pages there are, ``notebooks`` turns a notebook into one, ``links`` knows where every
link leads, ``extension`` and ``static`` are what Sphinx is told, and ``build`` puts them together.
"""
