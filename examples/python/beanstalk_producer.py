#!/usr/bin/env python3
"""Puts a job into the tube greet: python3 beanstalk_producer.py [NAME]"""

import json
import os
import socket
import sys

host, port = os.environ.get("BEANSTALKD_SERVER", "127.0.0.1:11300").rsplit(":", 1)
body = json.dumps([sys.argv[1] if len(sys.argv) > 1 else "Python"]).encode()

with socket.create_connection((host, int(port))) as connection, connection.makefile("rwb") as stream:
    stream.write(b"use greet\r\nput 1024 0 60 %d\r\n%s\r\n" % (len(body), body))  # priority, delay, time to run
    stream.flush()
    stream.readline()  # USING greet
    reply, *words = stream.readline().decode().split()
    if reply != "INSERTED":
        sys.exit(reply)
    print("submitted", words[0])
