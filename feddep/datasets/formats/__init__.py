"""One module for each format in which raw files come; each has ``read(directory, release) -> Graph``."""
