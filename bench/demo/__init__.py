"""The demo: one mixed workload of real programs on ext4 and on streamfs, side by side."""
