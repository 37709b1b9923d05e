"""Methods of other code: divisions for it as files, and its predictions judged beside recorded
runs.
"""

REVISION = 1
"""Of the protocol.  Raised when rows of before and after it cannot be compared."""
