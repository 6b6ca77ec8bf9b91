"""The round trip with Label Studio: tasks out, annotations in, and an ML backend."""
