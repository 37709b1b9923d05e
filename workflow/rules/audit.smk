"""What really leaves clients, attacked: on Cora with 5 clients, where there are such.  On demand: tables/audit.md."""

from types import SimpleNamespace

from feddep.provenance import code_fingerprint

AUDIT_ROUNDS = 10
AUDITED = {
    "membership": [
        *("local", "fedavg", "fedgnn", "fedgraph", "fedgsl", "fedsage_plus"),
        *("feddep_wo_dgen", "feddep_wo_proto", "feddep_wo_nfdp", "feddep"),
    ],
    "canaries": ["feddep_wo_nfdp"],
    "properties": ["feddep_wo_nfdp"],
    "reconstruction": ["feddep"],
}
"""For each part of the audit the frameworks whose parameters it takes."""


def audit_run(framework):
    """The run that is audited: first setting, of which the first rounds, and first seed."""
    dataset = "cora" if "cora" in config["datasets"] else next(iter(config["datasets"]))
    clients = 5 if 5 in config["clients"] else config["clients"][0]
    setting = f"{next(iter(config['settings']))},rounds={AUDIT_ROUNDS}"
    return plan.Run(setting, dataset, clients, framework, config["seeds"][0])


def audit_files(wildcards):
    run = audit_run("feddep")
    return problem_files(SimpleNamespace(dataset=run.dataset, seed=run.seed, scope=run.scope))


def audit_key(wildcards):
    run = audit_run(getattr(wildcards, "framework", "feddep"))
    return plan.digest({"run": plan.key(config, run), "code": code_fingerprint("feddep.stages.audit")})


rule audit_part:
    """One part of the audit, with the parameters of one framework."""
    message: "Attack what leaves clients: {wildcards.part}, {wildcards.framework}"
    input: unpack(audit_files)
    output: multiext(f"{OUTPUT}/audit/{{part}}/{{framework}}", ".csv", ".json")
    log: f"{OUTPUT}/logs/audit/{{part}}/{{framework}}.log"
    benchmark: f"{OUTPUT}/benchmarks/audit/{{part}}/{{framework}}.tsv"
    wildcard_constraints:
        part="|".join(AUDITED),
    params:
        key=audit_key,
        run=lambda wildcards, input: problem_flags(audit_run(wildcards.framework), input, {}),
    threads: config["threads"]
    resources:
        mem_mb=4000,
        gpu=gpus(),
    shell: feddep(f"audit --part {{wildcards.part}} --config {CONFIG} {{params.run}} --output {{output[0]}}")


rule audit:
    """One table, guarantee above and attack below, and what prototypes tell of features as a figure."""
    message: "Put the audit together"
    input:
        unpack(audit_files),
        findings=[f"{OUTPUT}/audit/{part}/{framework}.csv" for part, names in AUDITED.items() for framework in names],
    output:
        multiext(f"{OUTPUT}/tables/audit", ".md", ".csv", ".json"),
        [f"{OUTPUT}/tables/audit_{part}.csv" for part in AUDITED if part != "membership"],
        multiext(f"{OUTPUT}/figures/reconstruction", ".svg", ".png"),
    log: f"{OUTPUT}/logs/audit/report.log"
    params:
        key=audit_key,
        run=lambda wildcards, input: problem_flags(audit_run("feddep"), input, {}),
        findings=lambda wildcards, input: " ".join(f"--findings {file}" for file in input.findings),
    threads: 1
    resources: mem_mb=1000
    shell: feddep(f"audit --part report --config {CONFIG} {{params.run}} {{params.findings}} --output {OUTPUT}")
