"""The methods of the papers, a package each: its ``__init__.py`` declares parameters, steps and
methods.
"""
