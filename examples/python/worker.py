#!/usr/bin/env python3
"""Works on the queue greet until it is stopped: python3 worker.py"""

import json
import os
import urllib.request

API = os.environ.get("BROKER_URL", "http://127.0.0.1:7420") + "/api/v1"


def post(path, body):
    """Calls the API. The answer is None if there is nothing to say."""
    request = urllib.request.Request(API + path, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request) as response:
        text = response.read()
        return json.loads(text) if text else None


while True:
    lease = post("/queues/greet/lease?wait=60s", {})
    if lease is None:  # there was no job
        continue
    done = "/leases/" + lease["lease"]
    try:
        job = lease["job"]
        # A job from a Gearman client has a body, which is a JSON array by agreement.
        (name,) = job["args"] if "args" in job else json.loads(job["body"])
        print("Hello,", name, flush=True)
        post(done + "/complete", {"result": "greeted " + name})
    except Exception as error:
        post(done + "/fail", {"error_class": type(error).__name__, "message": str(error)})
