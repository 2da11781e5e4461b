<?php
// Works on the queue greet until it is stopped: php worker.php

$worker = new GearmanWorker();
$worker->addServers(getenv('GEARMAN_SERVER') ?: '127.0.0.1:4730');

$worker->addFunction('greet', function (GearmanJob $job): string {
    [$name] = json_decode($job->workload(), true); // a JSON array of arguments, whatever the protocol of the producer
    echo "Hello, $name\n";
    return "greeted $name";
});

while (true) {
    if (!@$worker->work()) { // the broker may be restarted: the next call connects again
        fwrite(STDERR, 'trying again in a second: ' . $worker->error() . "\n");
        sleep(1);
    }
}
