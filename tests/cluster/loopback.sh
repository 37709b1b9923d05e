#!/usr/bin/env bash
# Runs a command on a SLURM cluster of one node that lives as long as the command, on 127.0.0.1 and in a temporary folder:
#   tests/cluster/loopback.sh sinfo
#   tests/cluster/loopback.sh snakemake --workflow-profile workflow/profiles/slurm
# Needs Debian's packages slurm-wlm and munge. There is no accounting, and the one GPU is /dev/null, which four jobs may
# share: SLURM only counts them.
# LOOPBACK_CPUS says how many processors the node has; the machine's, if it says nothing. Daemons' logs are printed on failure.

set -euo pipefail
(($#)) || { echo "usage: $0 COMMAND [ARGUMENT...]" >&2; exit 2; }
for command in munged slurmctld slurmd sbatch scontrol; do
  PATH=$PATH:/usr/sbin:/sbin command -v "$command" >/dev/null || { echo "$0: $command is not installed" >&2; exit 2; }
done
PATH=$PATH:/usr/sbin:/sbin

folder=$(mktemp -d)
daemons=()
stop() {
  scancel --user "$(id -un)" 2>/dev/null || true
  for _ in {1..40}; do [[ -z $(squeue --noheader --states running,completing 2>/dev/null) ]] && break; sleep 0.25; done
  for ((i = ${#daemons[@]} - 1; i >= 0; i--)); do kill "${daemons[i]}" 2>/dev/null || true; done
  wait "${daemons[@]}" 2>/dev/null || true
  rm -rf "$folder"
}
trap stop EXIT

free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
node=$(hostname -s)
export SLURM_CONF=$folder/slurm.conf
chmod 755 "$folder"
mkdir "$folder"/{bin,state,spool}
cat >"$SLURM_CONF" <<END
ClusterName=loopback
SlurmctldHost=$node(127.0.0.1)
SlurmctldPort=$(free_port)
SlurmdPort=$(free_port)
SlurmUser=$(id -un)
SlurmdUser=$(id -un)
AuthInfo=socket=$folder/munge.socket
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
MailProg=/bin/true
MinJobAge=3600
SlurmdParameters=config_overrides
GresTypes=gpu,shard
NodeName=$node NodeAddr=127.0.0.1 CPUs=${LOOPBACK_CPUS:-$(nproc)} RealMemory=$(awk '/MemTotal/ {print int($2 / 1024)}' /proc/meminfo) Gres=gpu:1,shard:4
PartitionName=loopback Nodes=$node Default=YES
END
printf 'Name=gpu File=/dev/null\nName=shard Count=4\n' >"$folder/gres.conf"
head -c 1024 /dev/urandom >"$folder/munge.key"
chmod 400 "$folder/munge.key"

# Snakemake's executor takes every SLURM_ variable from the environment of srun, also the one that says where the cluster is.
printf '#!/bin/sh\nSLURM_CONF=%q exec %q "$@"\n' "$SLURM_CONF" "$(command -v srun)" >"$folder/bin/srun"
chmod 755 "$folder/bin/srun"
export PATH=$folder/bin:$PATH

start() { # name of the log, command
  "${@:2}" >"$folder/$1.log" 2>&1 &
  daemons+=($!)
}
start munged munged --foreground --force --socket="$folder/munge.socket" --key-file="$folder/munge.key" \
  --pid-file="$folder/munged.pid" --log-file="$folder/munged.log" --seed-file="$folder/munge.seed"
for _ in {1..40}; do [[ -S $folder/munge.socket ]] && break; sleep 0.1; done
start slurmctld slurmctld -D -i
start slurmd slurmd -D -N "$node"
for _ in {1..100}; do
  [[ $(sinfo --noheader --format %T 2>/dev/null) == idle ]] && break
  sleep 0.1
done
if [[ $(sinfo --noheader --format %T 2>&1) != idle ]]; then
  echo "$0: no SLURM came up in 10 s; its logs:" >&2
  tail -n 15 "$folder"/*.log >&2
  exit 1
fi
"$@"
