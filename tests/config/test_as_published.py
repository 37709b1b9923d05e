"""The settings of the papers' authors are the first rows of the studies that lead to ours."""

from feddep.config.loading import load
from feddep.experiment import plan
from workspace import REPOSITORY


def test_the_studies_begin_where_the_authors_are() -> None:
    folder = REPOSITORY / "config"
    default, published = folder / "default.yaml", folder / "as_published.yaml"
    config = load(default)
    rows = {
        run.key
        for name in ("as_published", "fedsage_as_published", "vesper_as_published")
        for run in plan.study_runs(config, name)
    }
    runs = [run for run in plan.runs(load(default, published)) if run.seed == 0]
    first = {run.setting.name for run in runs if run.key in rows}
    assert first == {"feddep_code", "fedsage_code", "vesper_paper"}
    missing = {run.method.name for run in runs if run.key not in rows}
    assert missing == {"vertical_mlp"}
