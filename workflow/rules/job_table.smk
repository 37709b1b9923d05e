"""What Snakemake's table of jobs does not say: which runs come from records, and how long the others will take."""

from snakemake.dag import DAG

from feddep.experiment import cost_estimate

table_of_jobs = DAG.stats


@cache
def estimated(dag):
    """The runs that the jobs of a DAG train or read, in one sentence; none where they do neither."""
    jobs = list(dag.needrun_jobs())
    to_train = [run_of(job.wildcards) for job in jobs if job.rule.name == "classify"]
    steps = [step_of(job.wildcards) for job in jobs if job.rule.name == "step"]
    read = {str(file) for job in jobs for file in job.input}
    made = {str(job.output.metrics) for job in jobs if job.rule.name == "classify"}
    finished = {file for file in read - made if file.startswith(f"{OUTPUT}/runs/") and file.endswith("/metrics.json")}
    recorded = len(read & RECORDED)
    runs = len(to_train) + len(finished) + recorded
    if not runs and not steps:
        return ""
    return f"{cost_estimate.of_jobs(to_train, steps, runs, recorded, cost_estimate.Durations(config))}\n"


def stats(self):
    """The table of jobs, with what its runs take below it before they start."""
    message, counts = table_of_jobs(self)
    return message if any(self.finished_jobs) else f"{message}\n{estimated(self)}", counts


DAG.stats = stats
# Of tracked tables Snakemake remembers nothing in a fresh clone; whether they are right is told by checksums and keys.
workflow.log_missing_metadata_info = lambda: None
