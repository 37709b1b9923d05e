"""Questions about FedSage+: its tables and figures, and its generator."""
