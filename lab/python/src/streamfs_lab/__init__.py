"""Research on placement: replays of traces under what streamfs learns, rivals and oracles."""
