"""Questions, a YAML file each; those that measure something of their own have a package of the same
name (see ``measuring``).
"""
