"""Turns data into pictures with alt text. `svg` draws diagrams, and `plots` draws charts with axes."""
