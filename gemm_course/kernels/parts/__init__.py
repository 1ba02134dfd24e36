"""What the kernels of several stages share, and what a stage is."""
