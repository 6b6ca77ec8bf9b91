"""Label Studio: send tasks, read annotations, and serve an ML backend."""
