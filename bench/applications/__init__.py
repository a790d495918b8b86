"""The measurement of bench/apps: its rows, its figures, and its report of them."""
