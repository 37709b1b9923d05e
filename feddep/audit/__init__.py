"""The empirical audit: what those who receive a client's messages find out about it, measured by attacking.

A guarantee bounds from above what a mechanism tells; an attack that works shows from below what it tells.  The attackers here
receive what really crosses :class:`feddep.federation.boundary.Boundary` and know everything of a client but its edges: its
nodes, their features and labels, which are trained on, and how training works.  That is whom edge-local differential privacy
is promised against (docs/privacy.md), and more than a server has.

* :mod:`feddep.audit.tap` hears what crosses while a framework runs.
* :mod:`feddep.audit.updates` and :mod:`feddep.audit.rows` turn it into facts on pairs of nodes, from which
  :mod:`feddep.audit.attacks` learns on other clients to tell edges from :mod:`feddep.audit.pairs` that are none:
  :mod:`feddep.audit.membership`.
* :mod:`feddep.audit.properties` infers properties of a whole client.
* :mod:`feddep.audit.canaries` bounds ε from below by runs with and without one edge (:mod:`feddep.audit.bounds`).
* :mod:`feddep.audit.reconstruction` reconstructs features from prototypes, and :mod:`feddep.audit.recovery` rows of features and
  embeddings from gradients.
* :mod:`feddep.audit.guarantees` says what is promised, and :mod:`feddep.audit.report` puts both side by side.
"""

from feddep.errors import FeddepError


class AuditError(FeddepError):
    """What is to be audited leaves nothing to attack, or too little to measure by."""
