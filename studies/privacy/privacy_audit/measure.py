"""The empirical privacy audit: what an adversary who receives a client's messages infers about the
client.

A guarantee bounds from above what a mechanism tells; an attack that works bounds it from below.
The adversary receives what crosses :class:`feddep.federation.boundary.Boundary`, and knows
everything of a client but its edges (docs/results/leakage.md).

* ``membership``: which edges a client has, for every method that is run;
* ``canaries``: lower bounds on ε, from edges that are inserted (:mod:`.canaries`, :mod:`.one_run`);
* ``properties``: facts about a whole client;
* ``reconstruction``: features from prototypes.
"""

from feddep.methods.feddep import WithoutNFDPParameters
from feddep.utils.errors import ConfigError
from studies.measuring import Case, Tables
from studies.privacy.privacy_audit import canaries, membership, properties, reconstruction
from studies.privacy.privacy_audit.claims import claimed


def measure(case: Case) -> Tables:
    """Attack a run.

    Returns:
        The rows of each part by its name; to those of ``membership`` are added rounds, and promise,
        the claimed guarantee. Canaries and properties are parts of FedDEP w/o NFDP alone, whose
        parameters are FedDEP's and those of the noise, and reconstruction of FedDEP.

    Raises:
        ConfigError: if there are no clients to attack, or too few.
    """
    method, task, parameters = case.method, case.task, case.parameters
    if task.partition is None:
        raise ConfigError(f"an audit is of clients, and the method {method.name} has none")
    rows = membership.measure(method, task, parameters)
    claims = [claimed(task, method.name, parameters, row["leaves"]) for row in rows]
    of = {"rounds": task.setting.rounds}
    tables = {
        "membership": [
            {**of, **row, "promise": claim} for row, claim in zip(rows, claims, strict=True)
        ]
    }
    if isinstance(parameters, WithoutNFDPParameters):
        tables["canaries"] = canaries.measure(task, parameters)
        tables["properties"] = properties.measure(task, parameters)
    if method.name == "feddep":
        tables["reconstruction"] = reconstruction.measure(task, parameters)
    return tables
