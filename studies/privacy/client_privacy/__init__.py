"""What neighbour sampling and DP-SGD guarantee every client of the benchmark."""
