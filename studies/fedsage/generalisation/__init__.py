"""The generalisation bound of FedSage's Section 6, with its quantities."""
