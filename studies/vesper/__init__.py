"""Questions about VESPER and its rivals in vertical training."""
