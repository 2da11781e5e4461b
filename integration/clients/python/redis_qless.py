"""A client of Qless on Debian's python3-redis, which plays what the upstream Python client and its workers do.

    redis_qless.py ADDRESS [PASSWORD]

REDIS_CA names the certificate of a server with TLS. It prints one line for each flow and ends with an error at the first reply that is not as it must be.
"""
import json
import os
import sys

import redis

SCRIPT = "-- Current SHA: 0123456789abcdef0123456789abcdef01234567\n-- This is a generated file\nlocal Qless = {}\n"


class Client:
    """Calls operations as the upstream client does: EVALSHA, and SCRIPT LOAD if the script is unknown."""

    def __init__(self, connection):
        self.redis = connection
        self.sha = "0" * 40

    def __call__(self, now, operation, *args):
        try:
            return self.redis.evalsha(self.sha, 0, operation, now, *args)
        except redis.exceptions.NoScriptError:
            self.sha = self.redis.script_load(SCRIPT)
            return self.redis.evalsha(self.sha, 0, operation, now, *args)

    def json(self, now, operation, *args):
        return json.loads(self(now, operation, *args))

    def job(self, now, jid):
        return self.json(now, "get", jid)


def want(got, expected, what=""):
    if got != expected:
        raise AssertionError("%s\n got %r\nwant %r" % (what, got, expected))


def refused(text, call, *args):
    try:
        got = call(*args)
    except redis.exceptions.ResponseError as e:
        if text not in str(e):
            raise AssertionError("%r\n got %s\nwant %s" % (args, e, text)) from e
        return
    raise AssertionError("%r\n got %r\nwant the error %s" % (args, got, text))


def put_and_get(q):
    want(q(1000.5, "put", "w", "basic", "b1", "my.Klass", '{"a":"x/y","n":[]}', 0), "b1")
    want(q.job(1001, "b1"), {
        "jid": "b1", "klass": "my.Klass", "state": "waiting", "queue": "basic", "worker": "", "tracked": False,
        "priority": 0, "expires": 0, "retries": 5, "remaining": 5, "data": '{"a":"x/y","n":[]}', "tags": {},
        "history": [{"q": "basic", "what": "put", "when": 1000}], "failure": {}, "spawned_from_jid": False,
        "dependents": {}, "dependencies": {},
    })
    want(q(1001, "get", "nobody"), None)
    want([j["jid"] for j in q.json(1001, "multiget", "b1", "nobody")], ["b1"])
    want(q(1001, "multiget", "nobody"), "{}")
    if '"data":"{\\"a\\":\\"x\\/y\\",\\"n\\":[]}"' not in q(1001, "get", "b1"):
        raise AssertionError(q(1001, "get", "b1"))
    want(q(1001, "requeue", "w", "basic", "b1", "K2", "{}", 0, "priority", 3, "tags", '["t1"]', "retries", 2), "b1")
    job = q.job(1001, "b1")
    want((job["klass"], job["priority"], job["tags"], job["retries"]), ("K2", 3, ["t1"], 2))
    q(1002, "put", "w", "basic", "b1", "K3", "{}", 0)
    job = q.job(1002, "b1")
    want((job["klass"], job["priority"], job["tags"], job["retries"]), ("K3", 3, ["t1"], 2), "kept when not given")
    want(q(1002, "length", "basic"), 1)


def worker_loop(q):
    for i in range(3):
        q(2000 + i, "put", "w", "loop", "l%d" % i, "K", "{}", 0)
    q(2000, "put", "w", "loop", "first", "K", "{}", 0, "priority", 1)
    want([j["jid"] for j in q.json(2003, "peek", "loop", 10)], ["first", "l0", "l1", "l2"])
    jobs = q.json(2010, "pop", "loop", "w1", 2)
    want([(j["jid"], j["state"], j["worker"], j["expires"]) for j in jobs],
         [("first", "running", "w1", 2070), ("l0", "running", "w1", 2070)])
    want(q(2020.9, "heartbeat", "first", "w1", '{"n":1}'), 2080)
    want(q.job(2020, "first")["data"], '{"n":1}')
    want(q.json(2020, "queues", "loop"), {
        "name": "loop", "waiting": 2, "stalled": 0, "running": 2, "scheduled": 0, "depends": 0, "recurring": 0,
        "paused": False})
    want(q(2021, "jobs", "running", "loop"), ["l0", "first"])
    want(q(2030, "complete", "first", "w1", "loop", '{"done":true}'), "complete")
    job = q.job(2031, "first")
    want((job["state"], job["queue"], job["worker"], job["failure"], job["expires"], job["remaining"], job["data"]),
         ("complete", "", "", {}, 0, 5, '{"done":true}'))
    want(job["history"], [
        {"q": "loop", "what": "put", "when": 2000}, {"what": "popped", "when": 2010, "worker": "w1"},
        {"what": "done", "when": 2030}])
    want(q(2031, "jobs", "complete")[0], "first")
    want(q.json(2031, "workers", "w1"), {"jobs": ["l0"], "stalled": {}})
    want([w for w in q.json(2071, "workers") if w["name"] == "w1"], [{"name": "w1", "jobs": 0, "stalled": 1}])
    want(q(2032, "complete", "l0", "w1", "loop", "{}", "next", "after"), "waiting")
    want(q.job(2032, "l0")["queue"], "after")
    q.json(2033, "pop", "after", "w1", 1)
    want(q(2034, "complete", "l0", "w1", "after", "{}", "next", "after", "delay", 10), "scheduled")
    want(q(2035, "jobs", "scheduled", "after"), ["l0"])
    want(q.json(2045, "pop", "after", "w1", 1)[0]["jid"], "l0")
    want(q(2046, "complete", "l0", "w1", "after", "{}", "next", "after", "depends", '["l1"]'), "depends")
    want(q(2047, "jobs", "depends", "after"), ["l0"])
    want(q.json(2048, "pop", "loop", "w1", 1)[0]["jid"], "l1")
    want(q(2049, "complete", "l1", "w1", "loop", "{}"), "complete")
    want(q.job(2050, "l0")["state"], "waiting")


def failures(q):
    for i in range(3):
        q(3000 + i, "put", "w", "fails", "f%d" % i, "K", "{}", 0, "retries", 1)
        q(3000 + i, "pop", "fails", "w1", 1)
    want(q(3010.7, "fail", "f0", "w1", "group", "why", '{"x":1}'), "f0")
    job = q.job(3011, "f0")
    want((job["state"], job["worker"], job["expires"], job["failure"], job["data"]),
         ("failed", "", 0, {"group": "group", "message": "why", "when": 3010, "worker": "w1"}, '{"x":1}'))
    want(job["history"][-1], {"what": "failed", "when": 3010, "group": "group", "worker": "w1"})
    q(3011, "fail", "f1", "w1", "group", "why")
    want(q.json(3012, "failed"), {"group": 2})
    want(q.json(3012, "failed", "group"), {"total": 2, "jobs": ["f1", "f0"]})
    want(q.json(3012, "failed", "group", 1, 1), {"total": 2, "jobs": ["f0"]})
    want(q(3013, "unfail", "again", "group", 1), 1)
    want(q.json(3013, "failed", "group"), {"total": 1, "jobs": ["f1"]}, "the oldest is moved first")
    q(3013, "put", "w", "again", "f1", "K", "{}", 0)
    want(q(3014, "failed"), "{}")
    want(q(3014, "length", "again"), 2)
    want(q(3015, "retry", "f2", "fails", "w1", 5), 0)
    want(q.job(3015, "f2")["state"], "scheduled")
    want(q.json(3021, "pop", "fails", "w1", 1)[0]["jid"], "f2")
    want(q(3022, "retry", "f2", "fails", "w1"), -1)
    job = q.job(3022, "f2")
    want((job["state"], job["failure"]["group"]), ("failed", "failed-retries-fails"))


def lost_locks(q):
    q(4000, "config.set", "grace-period", 10)
    q(4000, "put", "w", "locks", "k", "K", "{}", 0, "retries", 1)
    q(4000, "pop", "locks", "w1", 1)
    want(q(4061, "pop", "locks", "w2", 1), "{}", "the first pop after the end begins the grace period")
    job = q.job(4061, "k")
    want((job["state"], job["worker"], job["history"][-1]["what"]), ("running", "w1", "timed-out"))
    want(q(4065, "jobs", "running", "locks"), ["k"])
    want(q.json(4072, "pop", "locks", "w2", 1)[0]["remaining"], 0)
    refused("Job k has been handed out to another worker: w2", q, 4073, "complete", "k", "w1", "locks", "{}")
    want(q(4074, "timeout", "k"), None)
    want(q.job(4074, "k")["state"], "stalled")
    want(q.json(4075, "pop", "locks", "w3", 1)[0]["worker"], "w3")
    want(q(4136, "pop", "locks", "w4", 1), "{}")
    want(q(4147, "pop", "locks", "w4", 1), "{}")
    job = q.job(4147, "k")
    want((job["state"], job["failure"]["group"], job["failure"]["message"]),
         ("failed", "failed-retries-locks", 'Job exhausted retries in queue "locks"'))
    q(4148, "config.unset", "grace-period")


def dependencies(q):
    q(5000, "put", "w", "deps", "d1", "K", "{}", 0)
    q(5000, "put", "w", "deps", "d2", "K", "{}", 0)
    q(5000, "put", "w", "deps", "d3", "K", "{}", 100, "depends", '["d1","d2","nobody"]')
    want(sorted(q.job(5000, "d3")["dependencies"]), ["d1", "d2"])
    want(q.job(5000, "d1")["dependents"], ["d3"])
    refused("Cancel(): d1 is a dependency of d3 but is not mentioned to be canceled", q, 5001, "cancel", "d1")
    want(q(5001, "depends", "d3", "off", "d2"), 1)
    want(q(5001, "depends", "d3", "on", "d2"), 1)
    for jid in q.json(5002, "pop", "deps", "w1", 2):
        q(5003, "complete", jid["jid"], "w1", "deps", "{}")
    want(q.job(5003, "d3")["state"], "scheduled", "a delayed one is scheduled for the time of its put")
    want(q.json(5101, "pop", "deps", "w1", 1)[0]["jid"], "d3")
    want(q(5102, "cancel", "d3", "nobody", "d1"), ["d3", "nobody", "d1"])
    want(q(5102, "get", "d3"), None)
    want(q.job(5102, "d1")["state"], "complete")
    q(5103, "put", "w", "deps", "d4", "K", "{}", 0)
    q(5103, "put", "w", "deps", "d5", "K", "{}", 0, "depends", '["d4"]')
    want(q(5104, "depends", "d5", "off", "all"), 1)
    want(q.job(5104, "d5")["state"], "waiting")


def recurring(q):
    want(q(6000, "recur", "rec", "r", "K", '{"x":1}', "interval", 10, 5, "tags", '["rt"]', "priority", 2,
           "retries", 3, "backlog", 0), "r")
    want(q.json(6001, "recur.get", "r"), {
        "jid": "r", "klass": "K", "state": "recur", "queue": "rec", "priority": 2, "interval": 10, "retries": 3,
        "count": 0, "data": '{"x":1}', "tags": ["rt"], "backlog": 0})
    want(q.redis.zscore("ql:q:rec-recur", "r"), 6005.0)
    want(q(6001, "jobs", "recurring", "rec"), ["r"])
    want(q(6004, "pop", "rec", "w1", 1), "{}")
    jobs = q.json(6026, "pop", "rec", "w1", 10)
    want([(j["jid"], j["tags"], j["priority"], j["spawned_from_jid"]) for j in jobs],
         [("r-1", ["rt"], 2, "r"), ("r-2", ["rt"], 2, "r"), ("r-3", ["rt"], 2, "r")])
    want(q(6027, "recur.update", "r", "interval", 20, "klass", "K2", "queue", "rec2"), 1)
    want(q.redis.zscore("ql:q:rec2-recur", "r"), 6045.0)
    want(q.json(6027, "recur.tag", "r", "more"), ["rt", "more"])
    want(q.json(6027, "recur.untag", "r", "rt"), ["more"])
    want(q.json(6045, "peek", "rec2", 5)[0]["jid"], "r-4")
    want(q(6046, "unrecur", "r"), 1)
    want(q(6046, "unrecur", "r"), 1)
    want(q(6046, "recur.get", "r"), None)


def tags_and_tracking(q):
    q(7000, "put", "w", "tags", "t1", "K", "{}", 0, "tags", '["red"]')
    q(7001, "put", "w", "tags", "t2", "K", "{}", 0, "tags", '["red","blue"]')
    want(q.json(7002, "tag", "get", "red"), {"total": 2, "jobs": ["t1", "t2"]})
    want(q.json(7002, "tag", "get", "red", 1, 1), {"total": 2, "jobs": ["t2"]})
    want(q.json(7002, "tag", "add", "t1", "green", "blue"), ["red", "green", "blue"])
    want(q.json(7002, "tag", "remove", "t1", "red"), ["green", "blue"])
    want(q.json(7002, "tag", "top"), ["rt", "blue"])
    want(q(7003, "track", "track", "t1"), "1")
    want(q(7003, "track", "track", "t1"), "0")
    tracked = q.json(7003, "track")
    want((["t1"], {}), ([j["jid"] for j in tracked["jobs"]], tracked["expired"]))
    want(q.job(7003, "t1")["tracked"], True)
    want(q(7003, "track", "untrack", "t1"), "1")
    refused("Track(): Job does not exist", q, 7003, "track", "track", "nobody")


def queues_and_config(q):
    q(8000, "put", "w", "paused", "p1", "K", "{}", 0)
    want(q(8000, "pause", "paused"), None)
    want(q(8001, "pop", "paused", "quiet", 1), "{}")
    want([w for w in q.json(8001, "workers") if w["name"] == "quiet"], [])
    want(q.json(8001, "queues", "paused")["paused"], True)
    want(q(8002, "unpause", "paused"), None)
    want(q.json(8002, "pop", "paused", "w1", 1)[0]["jid"], "p1")
    want(q(8003, "priority", "p1", 7), 7)
    want(q(8003, "log", "p1", "seen", '{"by":"me"}'), None)
    want(q.job(8003, "p1")["history"][-1], {"by": "me", "what": "seen", "when": 8003})
    want(q(8003, "config.get", "heartbeat"), 60)
    want(q(8003, "config.set", "paused-max-concurrency", 1), None)
    q(8003, "put", "w", "paused", "p2", "K", "{}", 0)
    want(q(8004, "pop", "paused", "w1", 1), "{}", "one job of the queue may run")
    want(q(8004, "config.get", "paused-max-concurrency"), "1")
    want(q(8004, "config.unset", "paused-max-concurrency"), None)
    want(q(8004, "config.get", "paused-max-concurrency"), None)
    want(q.json(8004, "config.get"), {
        "application": "qless", "heartbeat": 60, "grace-period": 10, "stats-history": 30, "histogram-history": 7,
        "jobs-history-count": 50000, "jobs-history": 604800})
    names = [x["name"] for x in q.json(8004, "queues")]
    want(names.count("paused"), 1)
    want(q(8005, "queue.forget", "paused"), None)
    want("paused" in [x["name"] for x in q.json(8005, "queues")], False)
    want(q(8005, "worker.deregister", "w1"), None)
    want("w1" in [x["name"] for x in q.json(8005, "workers")], False)


def statistics(q):
    q(9000, "put", "w", "stat", "s1", "K", "{}", 0)
    q(9000, "put", "w", "stat", "s2", "K", "{}", 0)  # of equals, the one with the greater jid is first
    q(9010, "pop", "stat", "w1", 1)
    q(9068, "pop", "stat", "w1", 1)
    q(9069, "complete", "s1", "w1", "stat", "{}")
    q(9080, "fail", "s2", "w1", "g", "m")
    got = q.json(9090, "stats", "stat", 9999)
    want((got["retries"], got["failed"], got["failures"]), (0, 1, 1))
    want((got["wait"]["count"], got["wait"]["mean"], round(got["wait"]["std"], 4)), (2, 39, 41.0122))
    histogram = [0] * 148
    histogram[10] = histogram[60] = 1
    want(got["wait"]["histogram"], histogram)
    want((got["run"]["count"], got["run"]["mean"], got["run"]["std"]), (1, 1, 0))
    q(9091, "cancel", "s2")
    want(q.json(9092, "stats", "stat", 0)["failed"], 0)


def messages(q):
    listener = q.redis.pubsub()
    channels = ("ql:log", "ql:w:ear", "ql:put", "ql:popped", "ql:completed", "ql:failed", "ql:stalled", "ql:canceled", "ql:track",
                "ql:untrack")
    listener.subscribe(*channels)
    for _ in channels:  # a message that comes before the subscription is lost
        want(listener.get_message(timeout=120)["type"], "subscribe")

    def heard(*expected):
        for channel, data in expected:
            m = listener.get_message(timeout=120)
            want((m["channel"], m["data"]), (channel, data))

    q(10000, "put", "w", "ear", "m", "K", "{}", 0)
    heard(("ql:log", '{"jid":"m","event":"put","queue":"ear"}'))
    q(10000, "track", "track", "m")
    heard(("ql:track", "m"))
    q(10000, "pop", "ear", "ear", 1)
    heard(("ql:popped", "m"))
    q(10000, "put", "other", "ear", "m", "K", "{}", 0)
    lost = '{"jid":"m","event":"lock_lost","worker":"ear"}'
    heard(("ql:log", '{"jid":"m","event":"put","queue":"ear"}'), ("ql:w:ear", lost), ("ql:log", lost), ("ql:put", "m"))
    q(10001, "pop", "ear", "ear", 1)
    heard(("ql:popped", "m"))
    q(10100, "pop", "ear", "x", 1)
    heard(("ql:stalled", "m"), ("ql:w:ear", lost), ("ql:log", lost))
    q(10101, "complete", "m", "ear", "ear", "{}", "next", "ear2")
    heard(("ql:completed", "m"), ("ql:log", '{"jid":"m","to":"ear2","event":"advanced","queue":"ear"}'))
    q(10102, "pop", "ear2", "ear", 1)
    q(10103, "fail", "m", "ear", "g", "why")
    heard(("ql:popped", "m"), ("ql:log", '{"message":"why","jid":"m","group":"g","event":"failed","worker":"ear"}'),
          ("ql:failed", "m"))
    q(10104, "put", "w", "ear", "m", "K", "{}", 0)
    q(10104, "pop", "ear", "ear", 1)
    q(10105, "cancel", "m")
    heard(("ql:log", '{"jid":"m","event":"put","queue":"ear"}'), ("ql:put", "m"), ("ql:popped", "m"),
          ("ql:log", '{"jid":"m","queue":"ear","event":"canceled","worker":"ear"}'),
          ("ql:w:ear", '{"jid":"m","queue":"ear","event":"canceled","worker":"ear"}'), ("ql:canceled", "m"))
    q(10106, "put", "w", "ear", "n", "K", "{}", 0)
    q(10106, "pop", "ear", "ear", 1)
    q(10107, "complete", "n", "ear", "ear", "{}")
    heard(("ql:log", '{"jid":"n","event":"put","queue":"ear"}'), ("ql:log", '{"jid":"n","event":"completed","queue":"ear"}'))
    q(10108, "config.set", "x", "1")
    q(10108, "config.unset", "x")
    heard(("ql:log", '{"option":"x","event":"config_set","value":"1"}'), ("ql:log", '{"event":"config_unset","option":"x"}'))
    want(q.redis.publish("ql:w:ear", "disconnect"), 1)
    heard(("ql:w:ear", "disconnect"))
    listener.unsubscribe()
    listener.close()


def ways_of_clients(q):
    r = q.redis
    want(r.ping(), True)
    want(r.script_exists(q.sha, "0" * 40), [True, False])
    want(r.client_setname("tester"), True)
    want(r.client_getname(), "tester")
    want(r.execute_command("SELECT", 0), True)
    refused("DB index is out of range", r.execute_command, "SELECT", 1)
    want(r.info()["redis_version"].startswith("7."), True)
    with r.pipeline(transaction=True) as p:
        for kind in ("locks", "work", "scheduled", "depends"):
            p.zcard("ql:q:tags-" + kind)
        want(p.execute(), [0, 2, 0, 0])
    with r.pipeline(transaction=False) as p:
        for i in range(200):
            p.evalsha(q.sha, 0, "put", 11000, "w", "pipe", "pipe-%d" % i, "K", "{}", 0)
        want(p.execute(), ["pipe-%d" % i for i in range(200)])
    want(q(11001, "length", "pipe"), 200)
    want(r.eval(SCRIPT, 0, "length", 11001, "pipe"), 200)
    script = r.register_script(SCRIPT)
    want(script(args=["length", 11001, "pipe"]), 200)
    refused("No matching script", r.evalsha, "1" * 40, 0, "get", 1, "x")
    refused("this server runs the Qless script only", r.eval, "return redis.call('get', 'x')", 0)
    refused("unknown command", r.get, "x")
    refused("No Keys should be provided", r.evalsha, q.sha, 1, "key", "get", 1, "x")
    refused("Unknown command nope", q, 1, "nope")
    want(r.script_flush(), True)
    want(q(11002, "length", "pipe"), 200, "the script is loaded again")


FLOWS = [put_and_get, worker_loop, failures, lost_locks, dependencies, recurring, tags_and_tracking, queues_and_config,
         statistics, messages, ways_of_clients]


def main():
    address, password = (sys.argv[1:] + [""])[:2]
    host, port = address.rsplit(":", 1)
    ca = os.environ.get("REDIS_CA")
    connection = redis.Redis(host=host, port=int(port), password=password or None, decode_responses=True, socket_timeout=120,
                             client_name="flows", ssl=bool(ca), ssl_ca_certs=ca or None)
    client = Client(connection)
    for flow in FLOWS:
        flow(client)
        print(flow.__name__, flush=True)


main()
