"""A ClientApp whose client 1 does in round 1 what the environment variable FAULT says."""

import math
import os
import time

from flwr.app import Context, Message
from flwr.clientapp import ClientApp

from feddep.deployment.client_app import answer_round
from feddep.deployment.messages import pack, unpack

app = ClientApp()
FAULTS = {
    "nan": lambda tensor: tensor * math.nan,
    "shape": lambda tensor: tensor[:-1],
    "type": lambda tensor: tensor.double() + 1e300,
}
SLEEP = 600
"""Seconds, far more than a round may take in a test."""


@app.train("round")
def answer(message: Message, context: Context) -> Message:
    reply = answer_round(message, context)
    payloads, facts = unpack(reply.content)
    if (facts["client"], facts["round"]) != (1, 1):
        return reply
    if os.environ["FAULT"] == "raise":
        raise ValueError("out of order")
    if os.environ["FAULT"] == "sleep":
        time.sleep(SLEEP)
        return reply
    payloads["model"] = {name: FAULTS[os.environ["FAULT"]](tensor) for name, tensor in payloads["model"].items()}
    return Message(pack(payloads, facts), reply_to=message)
