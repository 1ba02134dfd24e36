"""Turns data into one picture with alt text: `svg` draws diagrams, `plots` draws what has axes."""
