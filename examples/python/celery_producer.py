#!/usr/bin/env python3
"""Submits a task: python3 celery_producer.py [NAME]"""

import sys

from celery_app import greet

print("submitted", greet.delay(sys.argv[1] if len(sys.argv) > 1 else "Python").id)
