"""What the kinds of studies share: loading, naming, comparing and drawing."""
