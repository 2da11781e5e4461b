#!/usr/bin/env python3
"""Works on the queue greet until it is stopped: python3 worker.py"""

import json
import os
import sys
import time
import urllib.error
import urllib.request

API = os.environ.get("BROKER_URL", "http://127.0.0.1:7420") + "/api/v1"


def post(path, body):
    """Calls the API until the broker answers: it may be restarted. The answer is None if there is nothing to say."""
    request = urllib.request.Request(API + path, json.dumps(body).encode(), {"Content-Type": "application/json"})
    while True:
        try:
            with urllib.request.urlopen(request) as response:
                text = response.read()
                return json.loads(text) if text else None
        except OSError as error:
            if isinstance(error, urllib.error.HTTPError) and error.code not in (502, 503, 504):
                raise
            print("trying again in a second:", error, file=sys.stderr, flush=True)
            time.sleep(1)


def work(job):
    # A job from a Gearman client has a body, which is a JSON array by agreement.
    (name,) = job["args"] if "args" in job else json.loads(job["body"])
    print("Hello,", name, flush=True)
    return "greeted " + name


while True:
    lease = post("/queues/greet/lease?wait=60s", {})
    if lease is None:  # there was no job
        continue
    try:
        done, outcome = "/complete", {"result": work(lease["job"])}
    except Exception as error:
        done, outcome = "/fail", {"error_class": type(error).__name__, "message": str(error)}
    try:
        post("/leases/" + lease["lease"] + done, outcome)
    except urllib.error.HTTPError as error:  # the lease is over: the job goes to another worker
        print("the outcome was refused:", error, file=sys.stderr, flush=True)
