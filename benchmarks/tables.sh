#!/bin/sh
# Makes every table in benchmarks/results; a line makes one. The first saves the graphs that most of them read.
set -e
python -c 'from feddep import api; [api.load_dataset(g).save(f"results/graphs/{g}.safetensors") for g in ("cora", "citeseer", "pubmed", "msacademic", "amazon_computers", "coauthor_physics", "facebook_gender")]'
python -m benchmarks.training_step
python -m benchmarks.kernels
python -m benchmarks.rounds --datasets cora citeseer
python -m benchmarks.rounds --datasets pubmed amazon_computers --methods fedavg fedgta --output benchmarks/results/large_rounds
python -m benchmarks.roofline --datasets cora citeseer pubmed amazon_computers
python -m benchmarks.clients --datasets pubmed coauthor_physics facebook_gender
python -m benchmarks.stages
python -m benchmarks.main_table --clients 5 --seeds 0 --cores 1 --output benchmarks/results/one_core
python -m benchmarks.main_table --datasets cora citeseer pubmed --output benchmarks/results/three_graphs
python -m benchmarks.main_table --datasets msacademic --output benchmarks/results/msacademic
python -m benchmarks.distances
python -m benchmarks.correction
python -m benchmarks.vertical
python -m benchmarks.gpu --datasets cora msacademic --output benchmarks/results/gpu
python -m benchmarks.scaling --sizes 10000 100000 1000000 10000000
pip install openfgl-lib munkres cytoolz scikit-network dtaidistance pynndescent    # for the next five
python -m benchmarks.parity --datasets cora citeseer
python -m benchmarks.parity --rounds 25 --seeds 0 --datasets cora citeseer pubmed --methods fedavg fedgta local fedproto moon fedprox scaffold feddc fedpub --output benchmarks/results/parity_seconds
python -m benchmarks.parity --datasets pubmed --methods fedavg fedgta fedpub feddc moon local --seeds 0 1 2
pip install --no-build-isolation torch-scatter torch-sparse    # for OpenFGL's FedDEP
python -m benchmarks.whole_runs --datasets cora
python -m benchmarks.whole_runs --datasets citeseer --methods fedavg --output benchmarks/results/citeseer
python -m benchmarks.whole_runs --datasets pubmed --peers openfgl plain --turns 1 --output benchmarks/results/pubmed
python -m benchmarks.whole_runs --datasets pubmed --peers openfgl --turns 1 --setting optimizer=adam learning_rate=0.01 weight_decay=0.0005 --output benchmarks/results/pubmed_adam
python -m benchmarks.whole_runs --datasets msacademic --methods fedavg --peers openfgl plain --turns 1 --output benchmarks/results/msacademic
pip install --no-deps git+https://github.com/alibaba/FederatedScope    # and what --help names
python -m benchmarks.federatedscope_runs --datasets cora citeseer pubmed
git clone https://github.com/JinheonBaek/FED-PUB codes/FED-PUB    # and three more: --help
python -m benchmarks.authors --codes codes
