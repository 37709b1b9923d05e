"""Questions, a YAML file each, in a folder for each paper or subject.  Those that measure something
of their own have a package of the same name (see ``measuring``).
"""
