"""Training one model: the task, its setting, mini-batch learning, evaluation and history."""

REVISION = 1
"""Raised when the numbers of every method change, because those of the learner, the evaluator or
FedAvg do.
"""
