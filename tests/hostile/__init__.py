"""What tries to break evgp. `make test-hostile` runs it all and counts what was tried."""
