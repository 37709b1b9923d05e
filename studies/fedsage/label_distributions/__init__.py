"""Labels that clients hold, and that trained models predict."""
