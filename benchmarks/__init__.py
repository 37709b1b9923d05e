"""Speed and memory, ours beside a peer, as ratios measured in one run."""
