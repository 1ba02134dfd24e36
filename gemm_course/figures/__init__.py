"""Turns data into one picture: SVG for grids of cells, Matplotlib for charts, each with an alt text."""
