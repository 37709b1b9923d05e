"""A kind of study: the least and the greatest accuracy over the seeds."""

from matplotlib.figure import Figure

from feddep.reporting import markdown as md


class Spread:
    SHOWS = "The least and the greatest test accuracy over the seeds."

    @staticmethod
    def tables(study):
        by = study.points.groupby(["dataset", "clients", "method"], sort=False, dropna=False)
        return {"table": by["test"].agg(["min", "max"]).reset_index()}

    @staticmethod
    def markdown(study, tables):
        return md.shown(tables["table"], ["dataset", "clients", "method", "min", "max"], [])

    @staticmethod
    def figure(study, tables):
        drawn = Figure()
        drawn.subplots().bar(tables["table"]["method"], tables["table"]["max"])
        return drawn


KINDS = {"spread": Spread}
