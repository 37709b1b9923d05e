"""Questions about privacy: guarantees of sampling and of DP-SGD, attacks, private answers."""
