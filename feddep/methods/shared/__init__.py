"""What several methods share: stand-ins for nodes of other clients, and noise on updates."""
