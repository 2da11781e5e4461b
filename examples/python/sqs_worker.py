#!/usr/bin/env python3
"""Works on the queue greet until it is stopped: python3 sqs_worker.py"""

import json
import os
import sys
import time

import boto3
from botocore.exceptions import BotoCoreError, ClientError

sqs = boto3.client(
    "sqs", endpoint_url=os.environ.get("AWS_ENDPOINT_URL_SQS", "http://127.0.0.1:9324"), region_name="us-east-1",
    aws_access_key_id="any", aws_secret_access_key="any",
)
queue = sqs.create_queue(QueueName="greet")["QueueUrl"]

while True:
    try:
        received = sqs.receive_message(QueueUrl=queue, MaxNumberOfMessages=10, WaitTimeSeconds=20)
        for message in received.get("Messages", []):
            (name,) = json.loads(message["Body"])  # a JSON array of arguments, whatever the protocol of the producer
            print("Hello,", name, flush=True)
            sqs.delete_message(QueueUrl=queue, ReceiptHandle=message["ReceiptHandle"])
    except (BotoCoreError, ClientError) as error:  # the broker may be restarted
        print("trying again in a second:", error, file=sys.stderr, flush=True)
        time.sleep(1)
