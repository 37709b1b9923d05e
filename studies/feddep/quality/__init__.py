"""What FedDEP's generators generate beside guesses that need no training."""
