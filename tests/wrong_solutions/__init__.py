"""Right and wrong answers to every exercise, a module a chapter; tests/checks holds the checkers to them."""
