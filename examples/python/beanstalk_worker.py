#!/usr/bin/env python3
"""Works on the tube greet until it is stopped: python3 beanstalk_worker.py"""

import json
import os
import socket
import sys
import time

host, port = os.environ.get("BEANSTALKD_SERVER", "127.0.0.1:11300").rsplit(":", 1)


def ask(stream, command):
    """Sends a command and returns the words of its reply."""
    stream.write(command + b"\r\n")
    stream.flush()
    words = stream.readline().split()
    if not words:
        raise ConnectionError("the connection is closed")
    return words


def work(stream):
    ask(stream, b"watch greet")
    ask(stream, b"ignore default")
    while True:
        reply, *words = ask(stream, b"reserve")
        if reply != b"RESERVED":  # TIMED_OUT, as the broker stops
            raise ConnectionError(reply.decode())
        number, size = words
        body = stream.read(int(size) + 2)[:-2]
        (name,) = json.loads(body)  # a JSON array of arguments, whatever the protocol of the producer
        print("Hello,", name, flush=True)
        ask(stream, b"delete " + number)


while True:
    try:
        with socket.create_connection((host, int(port))) as connection, connection.makefile("rwb") as stream:
            work(stream)
    except OSError as error:  # the broker may be restarted
        print("trying again in a second:", error, file=sys.stderr, flush=True)
        time.sleep(1)
