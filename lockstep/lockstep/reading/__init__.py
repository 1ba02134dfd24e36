"""What a kernel's source says before it runs: names, constants, pruned branches, needed accesses."""
