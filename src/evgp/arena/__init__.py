"""Where strategies meet: one protocol, real data, networks that are really trained."""
