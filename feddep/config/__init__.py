"""The configuration: what it may say, variants of its entries, and loading with one sentence for
each mistake.
"""
