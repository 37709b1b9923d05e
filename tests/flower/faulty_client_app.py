"""A ClientApp whose client 1 takes its SuperNode with it, and all that it has started."""

import os
import signal

from flwr.app import Context, Message
from flwr.clientapp import ClientApp

from feddep.flower.client_app import answer_round

app = ClientApp()


@app.train("round")
def answer(message: Message, context: Context) -> Message:
    if context.node_config["client"] == 1:
        os.killpg(0, signal.SIGKILL)
    return answer_round(message, context)
