"""Questions about FedDEP: its tables and figures, its parts, missing neighbours."""
