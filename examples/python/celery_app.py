"""The tasks of celery_producer.py. Their worker: celery -A celery_app worker"""

import os

from celery import Celery

app = Celery("greetings", broker="sqs://any:any@" + os.environ.get("SQS_SERVER", "127.0.0.1:9324") + "//")
app.conf.broker_transport_options = {"region": "us-east-1", "is_secure": False, "wait_time_seconds": 20}
app.conf.task_default_queue = "celery-greet"


@app.task
def greet(name):
    print("Hello, " + name, flush=True)
