"""The empirical privacy audit: what an adversary who receives a client's messages infers about the client.

A guarantee bounds from above what a mechanism tells; an attack that works bounds it from below.  The adversary receives what
crosses :class:`feddep.federation.boundary.Boundary`, and knows everything of a client but its edges (docs/leakage.md).

* Messages: :mod:`feddep.audit.capture` passes on every message at the boundary while a method runs.
* Attacks: edge membership inference (:mod:`feddep.audit.membership`), on pairs of nodes (:mod:`feddep.audit.pairs`) described by
  model updates (:mod:`feddep.audit.updates`), embeddings and prototypes (:mod:`feddep.audit.embedding_features`) and inverted
  gradients (:mod:`feddep.audit.gradient_inversion`); property inference (:mod:`feddep.audit.properties`); canaries
  (:mod:`feddep.audit.canaries`, :mod:`feddep.audit.one_run`); reconstruction of features from prototypes
  (:mod:`feddep.audit.reconstruction`).
* Vertical training (:mod:`feddep.audit.vertical_trainings`), where a client is party A: node membership inference
  (:mod:`feddep.audit.node_membership`) and canaries (:mod:`feddep.audit.vertical_canaries`).
* Statistics: classifiers (:mod:`feddep.audit.attack_models`); AUC, confidence intervals and lower bounds on ε
  (:mod:`feddep.audit.attack_statistics`).
* Report: claimed guarantees beside the results of the attacks (:mod:`feddep.audit.audit_report`).
"""

from feddep.utils.errors import FeddepError


class AuditError(FeddepError):
    """The audit was asked for something that cannot be attacked, or that leaves too few samples to measure."""
