"""One module for each format of raw files, with ``read(directory, release) -> Graph``, or of files of one's own."""
