# SPDX-License-Identifier: Apache-2.0
"""Free TCP ports on 127.0.0.1, outside the range the kernel takes for outgoing connections."""

import random
import socket

PORT_MIN = 12000
PORT_MAX = 31000

_handed_out = set()


def free_port():
    """A port nobody listens on now and that this run has not handed out before."""
    for _ in range(1000):
        port = random.randint(PORT_MIN, PORT_MAX)
        if port in _handed_out:
            continue
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        _handed_out.add(port)
        return port
    raise RuntimeError("no free port found")
