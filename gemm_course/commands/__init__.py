"""What is around the lessons: opening the course, its state here, newer and fresh notebooks."""
