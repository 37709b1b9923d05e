"""The stages of the DAG: each reads files, calls the library and writes files; the only modules that know paths.

A stage is a module with ``HELP`` (one line), ``add_arguments(parser)`` and ``main(arguments)``; it runs alone as
``python -m feddep STAGE``.
"""
