"""FedDEP by processes: one exchange of prototypes.

Clients pretrain and cluster, and send their prototypes, once.  With those of the others, which come
with the first weights, they train their generators (pseudo-FL) and mend their subgraphs.
"""

from collections.abc import Sequence

from torch import nn

from feddep.federation.boundary import Boundary, Kinds
from feddep.federation.client import Client
from feddep.flower.protocols import Exchange, Payloads, Protocol, name_of, relay
from feddep.methods.feddep import classifier, mending, pretraining
from feddep.methods.feddep.generation import nearest_in
from feddep.methods.feddep.prototypes import Prototypes, find_prototypes
from feddep.methods.shared.impairing_clients import impair_client

PROTOTYPES = "prototypes"


class FedDEPProtocol(Protocol):
    """FedDEP, as a participant runs it."""

    def new_model(self) -> nn.Module:
        """The embedding-fused classifier."""
        return mending.new_classifier(self.task, self.parameters)

    def exchanges(self) -> Sequence[Exchange]:
        """Prototypes to all others."""
        return [Exchange(self._find_prototypes, lambda number: [PROTOTYPES], relay)]

    def messages(self) -> Kinds:
        """C prototypes a client."""
        return {PROTOTYPES: {"embeddings": (self._count, self.parameters.embedding)}}

    @property
    def _count(self) -> int:
        return self.parameters.prototypes or self.task.graph.num_classes

    def _find_prototypes(self, found: None, received: Payloads) -> tuple[Prototypes, Payloads]:
        pretrained, [part] = pretraining.prepared(self.task, [self.part], self.parameters)
        embeddings = pretraining.pretrain(pretrained, part, self.parameters, self.number)
        name, clustering = f"client{self.number}", self.parameters.clustering
        prototypes = find_prototypes(embeddings, self._count, clustering, self.task.seed, name)
        return prototypes, {PROTOTYPES: {"embeddings": prototypes.embeddings}}

    def new_client(self, boundary: Boundary, found: Prototypes, received: Payloads) -> Client:
        """A client that has mended its subgraph."""
        search = nearest_in([received[name_of(PROTOTYPES, j)]["embeddings"] for j in self.others])
        impaired = impair_client(self.task, self.parameters, self.number, self.part)
        mended, *_ = mending.mend(
            self.task, self.parameters, self.number, self.part, impaired, found.of_nodes, search
        )
        return classifier.new_client(
            self.task, self.parameters, self.number, self.part, mended, boundary
        )
