"""The measurements: bench/NAME is the module NAME."""
