#!/usr/bin/env python3
"""Sends a message to the queue greet: python3 sqs_producer.py [NAME]"""

import json
import os
import sys

import boto3

sqs = boto3.client(
    "sqs", endpoint_url=os.environ.get("AWS_ENDPOINT_URL_SQS", "http://127.0.0.1:9324"), region_name="us-east-1",
    aws_access_key_id="any", aws_secret_access_key="any",
)
queue = sqs.create_queue(QueueName="greet")["QueueUrl"]  # or that of the queue as it is
body = json.dumps([sys.argv[1] if len(sys.argv) > 1 else "Python"])
print("submitted", sqs.send_message(QueueUrl=queue, MessageBody=body)["MessageId"])
