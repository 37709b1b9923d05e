"""Errors that a user can act on: each is one sentence that names what was found and what is allowed."""


class FeddepError(Exception):
    """Base of all errors that the command line prints as one sentence, without a traceback."""


class ConfigError(FeddepError):
    """A configuration key is unknown, missing or has a value that is not allowed."""


class DataError(FeddepError):
    """A data file is missing, corrupt, or not what its checksum or fingerprint promises."""


class PartitionError(FeddepError):
    """A graph cannot be split to the number of clients that was asked for."""


class WorkflowEndedError(FeddepError):
    """A stage would write a result for a workflow that is gone."""
