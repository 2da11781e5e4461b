<?php
// Works on the queue greet until it is stopped: php worker.php

$worker = new GearmanWorker();
$worker->addServers(getenv('GEARMAN_SERVER') ?: '127.0.0.1:4730');

$worker->addFunction('greet', function (GearmanJob $job): string {
    [$name] = json_decode($job->workload(), true); // a JSON array of arguments, whatever the protocol of the producer
    echo "Hello, $name\n";
    return "greeted $name";
});

while ($worker->work()) {
}
fwrite(STDERR, $worker->error() . "\n");
exit(1);
