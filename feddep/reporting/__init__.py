"""From finished runs to what people read: tables, figures, one page; each number beside the
published one.
"""
