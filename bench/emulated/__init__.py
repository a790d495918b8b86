"""A filesystem on an emulated SSD at 7 % effective spare, worked on by real programs."""
