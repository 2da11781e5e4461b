"""Plays flows of SQS clients on boto3: ADDRESS query|json [ACCESS_KEY SECRET_KEY]. Prints the flows that held."""

import hashlib
import json
import sys
import threading
import time

import boto3
import botocore.session
from botocore.config import Config
from botocore.exceptions import ClientError

address, protocol = sys.argv[1:3]
key, secret = (sys.argv[3:] + ["any", "any"])[:2]


def session_of(protocol):
    """Newer releases of boto3 speak JSON only. This one has the model of Query; both have the same shapes."""
    core = botocore.session.get_session()
    if protocol == "json":
        loader = core.get_component("data_loader")
        load = loader.load_service_model

        def as_json(service, kind, api_version=None):
            model = load(service, kind, api_version)
            if service == "sqs" and kind == "service-2":
                model = json.loads(json.dumps(model))
                model["metadata"].update(protocol="json", jsonVersion="1.0", targetPrefix="AmazonSQS")
                strip(model["shapes"])
                for operation in model["operations"].values():
                    operation.get("output", {}).pop("resultWrapper", None)
            return model

        loader.load_service_model = as_json
    return boto3.Session(botocore_session=core)


def strip(node):
    if isinstance(node, dict):
        node.pop("locationName", None) if isinstance(node.get("locationName"), str) else None
        node.pop("flattened", None)
        for value in node.values():
            strip(value)


sqs = session_of(protocol).client(
    "sqs", endpoint_url="http://" + address, region_name="eu-central-1", aws_access_key_id=key, aws_secret_access_key=secret,
    config=Config(retries={"max_attempts": 0}))
assert sqs.meta.service_model.metadata["protocol"] == protocol


def queue(name, **attributes):
    return sqs.create_queue(QueueName=name, Attributes=attributes)["QueueUrl"]


def receive(url, **more):
    more = {"MaxNumberOfMessages": 10, "AttributeNames": ["All"], "MessageAttributeNames": ["All"], **more}
    return sqs.receive_message(QueueUrl=url, **more).get("Messages", [])


def messages():
    url = queue("b-messages")
    body = 'a <&> "b"\r\n\té\U0001F600'
    attributes = {"k": {"DataType": "String.x", "StringValue": "v"}, "n": {"DataType": "Number", "StringValue": "-1.5e3"},
                  "b": {"DataType": "Binary", "BinaryValue": b"\0\xff"}}
    trace = {"AWSTraceHeader": {"DataType": "String", "StringValue": "Root=1-2-3"}}
    sent = sqs.send_message(QueueUrl=url, MessageBody=body, MessageAttributes=attributes, MessageSystemAttributes=trace)
    got = receive(url)[0]
    assert got["Body"] == body and got["MessageId"] == sent["MessageId"], got
    assert got["MD5OfBody"] == hashlib.md5(body.encode()).hexdigest()
    assert got["MessageAttributes"] == attributes and got["MD5OfMessageAttributes"] == sent["MD5OfMessageAttributes"], got
    assert got["Attributes"]["AWSTraceHeader"] == "Root=1-2-3" and got["Attributes"]["ApproximateReceiveCount"] == "1"
    sqs.change_message_visibility(QueueUrl=url, ReceiptHandle=got["ReceiptHandle"], VisibilityTimeout=0)
    again = receive(url, WaitTimeSeconds=5)[0]
    sqs.delete_message(QueueUrl=url, ReceiptHandle=again["ReceiptHandle"])
    assert receive(url) == []


def batches():
    url = queue("b-batches")
    sent = sqs.send_message_batch(QueueUrl=url, Entries=[{"Id": str(i), "MessageBody": "m%d" % i} for i in range(9)] + [
        {"Id": "bad", "MessageBody": "x", "DelaySeconds": 901}])
    assert len(sent["Successful"]) == 9 and sent["Failed"][0]["Id"] == "bad", sent
    got = receive(url)
    assert [m["Body"] for m in got] == ["m%d" % i for i in range(9)], got
    entries = [{"Id": str(i), "ReceiptHandle": m["ReceiptHandle"]} for i, m in enumerate(got)]
    changed = sqs.change_message_visibility_batch(QueueUrl=url, Entries=[{**e, "VisibilityTimeout": 60} for e in entries])
    assert len(changed["Successful"]) == 9, changed
    assert len(sqs.delete_message_batch(QueueUrl=url, Entries=entries)["Successful"]) == 9


def long_poll():
    took = []
    while not took or min(took) >= 10 and len(took) < 5:  # a busy machine may need longer
        url = queue("b-poll-%d" % len(took))
        threading.Timer(0.3, lambda: sqs.send_message(QueueUrl=url, MessageBody="m")).start()
        start = time.monotonic()
        assert len(receive(url, WaitTimeSeconds=20)) == 1
        took.append(time.monotonic() - start)
    assert min(took) < 10, took


def queues():
    url = queue("b-queue", DelaySeconds="5")
    assert sqs.get_queue_url(QueueName="b-queue")["QueueUrl"] == url and queue("b-queue") == url
    assert url in sqs.list_queues(QueueNamePrefix="b-q")["QueueUrls"]
    sqs.set_queue_attributes(QueueUrl=url, Attributes={"DelaySeconds": "0", "VisibilityTimeout": "7"})
    attributes = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
    assert attributes["VisibilityTimeout"] == "7" and attributes["ApproximateNumberOfMessages"] == "0", attributes
    sqs.tag_queue(QueueUrl=url, Tags={"a": "b", "c": "d"})
    sqs.untag_queue(QueueUrl=url, TagKeys=["a"])
    assert sqs.list_queue_tags(QueueUrl=url)["Tags"] == {"c": "d"}
    sqs.add_permission(QueueUrl=url, Label="l", AWSAccountIds=["111111111111"], Actions=["SendMessage"])
    assert "SQS:SendMessage" in sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["Policy"])["Attributes"]["Policy"]
    sqs.remove_permission(QueueUrl=url, Label="l")
    sqs.send_message(QueueUrl=url, MessageBody="m")
    sqs.purge_queue(QueueUrl=url)
    assert receive(url) == []
    sqs.delete_queue(QueueUrl=url)
    for call in (lambda: sqs.get_queue_url(QueueName="b-queue"), lambda: sqs.send_message(QueueUrl=url, MessageBody="m")):
        try:
            call()
            raise AssertionError("a deleted queue is there")
        except sqs.exceptions.QueueDoesNotExist:
            pass
        except ClientError as e:
            assert e.response["Error"]["Code"].endswith(("NonExistentQueue", "QueueDoesNotExist")), e.response


def groups():
    url = queue("b.fifo", FifoQueue="true", ContentBasedDeduplication="true")
    for body in ("a1", "a1", "a2", "b1"):
        sqs.send_message(QueueUrl=url, MessageBody=body, MessageGroupId=body[0])
    order = []
    while got := receive(url):
        for m in got:
            order.append(m["Body"])
            sqs.delete_message(QueueUrl=url, ReceiptHandle=m["ReceiptHandle"])
    assert [b for b in order if b[0] == "a"] == ["a1", "a2"] and sorted(order) == ["a1", "a2", "b1"], order
    for body in ("a3", "b2", "a4"):
        sqs.send_message(QueueUrl=url, MessageBody=body, MessageGroupId=body[0])
    together = receive(url, MaxNumberOfMessages=10)
    assert [m["Body"] for m in together] == ["a3", "a4", "b2"], together


def dead_letters():
    dead = queue("b-dead")
    arn = sqs.get_queue_attributes(QueueUrl=dead, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    url = queue("b-source", RedrivePolicy=json.dumps({"deadLetterTargetArn": arn, "maxReceiveCount": 1}))
    sqs.send_message(QueueUrl=url, MessageBody="m")
    assert len(receive(url, VisibilityTimeout=0)) == 1 and receive(url, WaitTimeSeconds=1) == []
    assert receive(dead, WaitTimeSeconds=20)[0]["Attributes"]["DeadLetterQueueSourceArn"].endswith(":b-source")
    assert sqs.list_dead_letter_source_queues(QueueUrl=dead)["queueUrls"] == [url]


for flow in (messages, batches, long_poll, queues, groups, dead_letters):
    flow()
    print(flow.__name__)
