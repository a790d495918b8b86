"""What bench/apps measures: its rows, its figures, and what it says of them."""
