"""Data in, one picture out: SVG for cells, Matplotlib for charts, and the same in words for every picture."""
