# The packages of requirements.lock and the workflow, run by a user without privileges:
#   docker build --build-arg UID="$(id -u)" --tag feddep-bench .
#   docker run --rm --init --volume "$PWD/results:/bench/results" feddep-bench --cores all --configfile config/smoke.yaml
# What follows the image's name is given to snakemake. With --gpus all it sees the GPUs of the machine.
FROM python:3.11-slim-bookworm

ARG UID=1000
RUN useradd --create-home --uid "$UID" bench && install --directory --owner bench /bench
WORKDIR /bench

# Before the code, so that a change of the code does not install them again.
COPY requirements.lock ./
RUN pip install --no-cache-dir --requirement requirements.lock

COPY --chown=bench pyproject.toml README.md LICENSE ./
COPY --chown=bench config config
COPY --chown=bench feddep feddep
COPY --chown=bench workflow workflow
COPY --chown=bench studies studies
COPY --chown=bench results results
RUN pip install --no-cache-dir --no-deps --no-build-isolation --editable .

USER $UID
ENTRYPOINT ["snakemake"]
