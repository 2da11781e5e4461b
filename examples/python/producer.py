#!/usr/bin/env python3
"""Submits a job to the queue greet: python3 producer.py [NAME]"""

import json
import os
import sys
import urllib.request

url = os.environ.get("BROKER_URL", "http://127.0.0.1:7420") + "/api/v1/jobs"
job = {"queue": "greet", "args": [sys.argv[1] if len(sys.argv) > 1 else "Python"]}

request = urllib.request.Request(url, json.dumps(job).encode(), {"Content-Type": "application/json"})
with urllib.request.urlopen(request) as response:
    print("submitted", json.load(response)["id"])
