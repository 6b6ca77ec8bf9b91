"""What `evgp` costs, side by side with what else there is: `python -m benchmarks [names]`.

Times of one machine say little, so every figure is also a ratio to something timed in the same
run, in turns with it. Nothing here fails because it was slow.
"""
