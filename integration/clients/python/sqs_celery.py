"""Plays Celery on SQS: ADDRESS worker DIR, or ADDRESS produce. The tasks write what they did into DIR."""

import os
import signal
import sys

from celery import Celery

address, role = sys.argv[1:3]
directory = sys.argv[3] if len(sys.argv) > 3 else ""

app = Celery("flows", broker="sqs://any:any@%s//" % address)
app.conf.broker_transport_options = {
    "region": "us-east-1", "is_secure": False, "visibility_timeout": 8, "wait_time_seconds": 2, "polling_interval": 0.1,
}
app.conf.task_default_queue = "celery-flows"
app.conf.worker_hijack_root_logger = False
app.conf.broker_connection_retry_on_startup = True


def note(name):
    with open(os.path.join(directory, name), "a") as f:
        f.write("x")


@app.task(name="work")
def work(n):
    note("work-%d" % n)


@app.task(name="again", bind=True, default_retry_delay=1, max_retries=3, acks_late=True)
def again(self):
    note("again")
    if self.request.retries < 1:
        raise self.retry(countdown=1)


@app.task(name="dies", acks_late=True)
def dies():
    """Its first worker is killed, so that the message comes back after the visibility timeout."""
    first = not os.path.exists(os.path.join(directory, "dies"))
    note("dies")
    if first:
        os.kill(os.getpid(), signal.SIGKILL)


if role == "worker":
    app.worker_main(["worker", "--pool=solo", "--concurrency=1", "--loglevel=WARNING", "--without-gossip", "--without-mingle", "--without-heartbeat"])
else:
    for i in range(20):
        work.delay(i)
    again.delay()
    dies.delay()
    print("sent")
