"""Real programs as a workload, in a process of its own: what each does, and how much of it."""
