"""Names of encoders, which need no PyTorch, and their classes."""

import importlib
from typing import Any

from feddep.utils.errors import ConfigError

ENCODERS: dict[str, str] = {
    "sage": "feddep.nn.sage.GraphSAGE",
    "sage_selfloop": "feddep.nn.selfloop.SelfLoopSAGE",
    "gcn": "feddep.nn.encoders.GCN",
    "gat": "feddep.nn.encoders.GAT",
    "mlp": "feddep.nn.encoders.MLP",
    "sgc": "feddep.nn.smoothed.SGC",
    "gamlp": "feddep.nn.smoothed.GAMLP",
}
"""The encoders of this package: by name, where their class is."""
SMOOTHED = ("sgc", "gamlp")
"""Those whose first layer reads several hops, so that they have no layers of hops to mend."""

ADDED: dict[str, Any] = {}
"""The encoders of plugins: by name, their class; :func:`feddep.methods.plugins.use` adds them."""


def is_encoder(name: str) -> bool:
    """Whether a setting may have this encoder: one by its name, or any class as MODULE.CLASS."""
    dotted = "." in name and all(map(str.isidentifier, name.split(".")))
    return dotted or name in ENCODERS or name in ADDED


def encoder_class(name: str) -> Any:
    """The class of an encoder.

    Raises:
        ConfigError: if a dotted name cannot be imported.
    """
    if name in ADDED:
        return ADDED[name]
    module, _, attribute = ENCODERS.get(name, name).rpartition(".")
    try:
        return getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise ConfigError(
            f"encoder is {name} (key settings), which cannot be imported: {error}"
        ) from None
