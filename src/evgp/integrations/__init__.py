"""Other people's tools, each behind one of our protocols and imported when it is asked for."""
