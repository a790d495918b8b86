"""What each bench/NAME measures, one module a name."""
