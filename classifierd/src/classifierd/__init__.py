"""Learns how long streamfs' data lives, and publishes where to put it."""
